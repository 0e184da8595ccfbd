<<<<<<<< HEAD:src/holdfast/web/static/assets/pseudo-BkZof5VB.js
import{n as e}from"./index-C1NCaE5T.js";function t(e){return typeof e==`string`?e.length<2||/^[\d\W]+$/.test(e)?e:`[${e}${`~`.repeat(Math.ceil(e.length*.4))}]`:typeof e==`function`?(...n)=>t(e(...n)):Array.isArray(e)?e.map(t):typeof e==`object`&&e?Object.fromEntries(Object.entries(e).map(([e,n])=>[e,t(n)])):e}var n={...t(e),code:`en`};export{n as pseudo};
========
import{n as e}from"./index-CbOFQSGu.js";function t(e){return typeof e==`string`?e.length<2||/^[\d\W]+$/.test(e)?e:`[${e}${`~`.repeat(Math.ceil(e.length*.4))}]`:typeof e==`function`?(...n)=>t(e(...n)):Array.isArray(e)?e.map(t):typeof e==`object`&&e?Object.fromEntries(Object.entries(e).map(([e,n])=>[e,t(n)])):e}var n={...t(e),code:`en`};export{n as pseudo};
>>>>>>>> 6b61d9b (List what needs somebody and what is pinned however old it is, because newer conversations hid them):src/holdfast/web/static/assets/pseudo-Bppq8eT1.js
