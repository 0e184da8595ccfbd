<<<<<<<< HEAD:src/holdfast/web/static/assets/pseudo-C5vGUqoU.js
import{n as e}from"./index-B8sKh6md.js";function t(e){return typeof e==`string`?e.length<2||/^[\d\W]+$/.test(e)?e:`[${e}${`~`.repeat(Math.ceil(e.length*.4))}]`:typeof e==`function`?(...n)=>t(e(...n)):Array.isArray(e)?e.map(t):typeof e==`object`&&e?Object.fromEntries(Object.entries(e).map(([e,n])=>[e,t(n)])):e}var n={...t(e),code:`en`};export{n as pseudo};
========
import{n as e}from"./index-C1UDjST_.js";function t(e){return typeof e==`string`?e.length<2||/^[\d\W]+$/.test(e)?e:`[${e}${`~`.repeat(Math.ceil(e.length*.4))}]`:typeof e==`function`?(...n)=>t(e(...n)):Array.isArray(e)?e.map(t):typeof e==`object`&&e?Object.fromEntries(Object.entries(e).map(([e,n])=>[e,t(n)])):e}var n={...t(e),code:`en`};export{n as pseudo};
>>>>>>>> dfb736e (Explain the commands in the language of the page):src/holdfast/web/static/assets/pseudo-Ch6k5r3F.js
