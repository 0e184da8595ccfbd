<<<<<<<< HEAD:src/holdfast/web/static/assets/pseudo-CSxffHjv.js
import{n as e}from"./index-BhlSZE7c.js";function t(e){return typeof e==`string`?e.length<2||/^[\d\W]+$/.test(e)?e:`[${e}${`~`.repeat(Math.ceil(e.length*.4))}]`:typeof e==`function`?(...n)=>t(e(...n)):Array.isArray(e)?e.map(t):typeof e==`object`&&e?Object.fromEntries(Object.entries(e).map(([e,n])=>[e,t(n)])):e}var n={...t(e),code:`en`};export{n as pseudo};
========
import{n as e}from"./index-C1o9IYSL.js";function t(e){return typeof e==`string`?e.length<2||/^[\d\W]+$/.test(e)?e:`[${e}${`~`.repeat(Math.ceil(e.length*.4))}]`:typeof e==`function`?(...n)=>t(e(...n)):Array.isArray(e)?e.map(t):typeof e==`object`&&e?Object.fromEntries(Object.entries(e).map(([e,n])=>[e,t(n)])):e}var n={...t(e),code:`en`};export{n as pseudo};
>>>>>>>> c02746e (Write out characters that are not seen in code and in what tools print, because there they are an attack):src/holdfast/web/static/assets/pseudo-DpnJJOqz.js
