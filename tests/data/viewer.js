// Runs the script of a plan's page without a browser: node viewer.js PAGE [parts]. Drives zoom, hover and keys once, then prints, a
// line a buffer, who its page says that it conflicts with. parts: prints a line a step, the sum of all parts of the arena and of those
// that buffers have, as a click below the axis shows them; the highest step; and what is drawn while the pointer is on a suggestion.
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
(0, eval)(script.replace('"use strict";', "").replace(/^(const|let) /gm, "var "));
const view = made.view, at = { clientX: 200, clientY: 300, pointerId: 1, preventDefault() {} };
view.wheel({ ...at, deltaY: -1 });
view.dblclick();
view.pointermove(at);
view.pointerdown(at);
view.pointermove({ ...at, clientX: 210 });
view.pointerup(at);
["ArrowLeft", "+", "-", "0", "Escape"].forEach(key => view.keydown({ key }));

function conflicts() {
    for (let b = 0; b < plan.bytes.length; b++) {
        choose(b);
        console.log(conflictsOf(b).join(" "));
    }
}

const withAll = (node, act) => (act(node), node.children.forEach(child => withAll(child, act)));

/* The bytes that the page lists, by the first cell of their lines. */
function listed() {
    const found = [];
    withAll(made.about, row => row.children.length === 3 && found.push([row.children[0].textContent, Number(row.children[1].textContent)]));
    return found;
}

function parts() {
    const drawn = [], below = 490; /* under the axis [pixel] */
    pen.fillText = text => drawn.push(text);
    for (let s = 0; s < plan.steps; s++) {
        const click = { ...at, clientX: toX(s + 0.5), clientY: below };
        view.pointerdown(click);
        view.pointerup(click);
        const lines = listed(), sum = lines.pop();
        const used = lines.filter(line => line[0] !== "alignment" && line[0] !== "hole").reduce((total, line) => total + line[1], 0);
        console.log(when, lines.reduce((total, line) => total + line[1], 0), sum[1], used);
    }
    view.keydown({ key: "p" });
    console.log("highest", when);
    withAll(made.about, item => {
        if (!item.pointerenter)
            return;
        drawn.length = 0;
        item.pointerenter();
        console.log(drawn.join(", "));
        item.pointerleave();
        console.log(after);
    });
}

(process.argv[3] === "parts" ? parts : conflicts)();
