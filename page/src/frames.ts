/** Runs `then` with the next frame, or soon where no frames are drawn (a hidden page). Gives what calls it off. */
export function nextFrame(then: () => void): () => void {
  const cancel = (): void => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
  };
  const run = (): void => {
    cancel();
    then();
  };
  const frame = requestAnimationFrame(run);
  const timer = setTimeout(run, 250);
  return cancel;
}
