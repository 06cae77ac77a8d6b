// Runs the script of a plan's page without a browser: node viewer.js PAGE. Drives zoom, hover and keys once, then prints, a line
// a buffer, who its page says that it conflicts with.
"use strict";
const script = require("fs").readFileSync(process.argv[2], "utf8").match(/<script>([\s\S]*)<\/script>/)[1];
const pen = new Proxy({}, { get: (t, key) => key in t ? t[key] : () => 0, set: (t, key, value) => (t[key] = value, true) });
const made = {};

function node() {
    return {
        textContent: "", value: "", children: [], clientWidth: 800, clientHeight: 500,
        append(child) { this.children.push(child); }, replaceChildren() { this.children = []; },
        addEventListener(kind, act) { this[kind] = act; }, getContext: () => pen, setPointerCapture() {},
        getBoundingClientRect: () => ({ left: 0, top: 0 }),
    };
}

global.document = { getElementById: id => made[id] = made[id] || node(), createElement: node };
global.window = { addEventListener() {}, devicePixelRatio: 1 };
(0, eval)(script.replace('"use strict";', "").replace("const plan", "var plan"));
const view = made.view, at = { clientX: 200, clientY: 300, pointerId: 1, preventDefault() {} };
view.wheel({ ...at, deltaY: -1 });
view.dblclick();
view.pointermove(at);
view.pointerdown(at);
view.pointermove({ ...at, clientX: 210 });
view.pointerup(at);
["ArrowLeft", "+", "-", "0", "Escape"].forEach(key => view.keydown({ key }));
for (let b = 0; b < plan.bytes.length; b++) {
    choose(b);
    console.log(conflictsOf(b).join(" "));
}
