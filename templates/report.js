"use strict";
for (const figure of document.querySelectorAll("figure.arena")) {
  const svg = figure.querySelector("svg");
  const data = JSON.parse(figure.querySelector("script").textContent);
  const tip = document.getElementById("tip");
  const hit = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  hit.setAttribute("class", "hit");
  for (const title of svg.querySelectorAll("title")) title.remove();  // the tip says more
  svg.append(hit);
  const bytes = (value) => value.toLocaleString("en-US") + " B";
  const hide = () => { tip.hidden = true; hit.setAttribute("width", 0); hit.setAttribute("height", 0); };
  const find = (x, y) => {
    for (const panel of data.panels) {
      const [left, bottom, perStep, perByte] = panel.frame;
      const step = Math.floor((x - left) / perStep), at = (bottom - y) / perByte;
      // what is drawn last lies on top: scratch comes after tensors
      const found = panel.blocks.findLast((b) => b[3] <= step && step < b[4] && b[5] <= at && at < b[5] + b[6]);
      if (found) return [panel, found, step];
    }
    return null;
  };
  const show = (event) => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const found = find(place.x, place.y);
    if (!found) return hide();
    const [panel, [name, first, end, born, died, offset, size], step] = found;
    const [left, bottom, perStep, perByte] = panel.frame;
    const what = first < 0 ? `scratch of ${data.names[name]}` :
      `${data.names[name]}, ${end - first === 1 ? `row ${first}` : `rows ${first} to ${end - 1}`}`;
    tip.textContent = `${what}\nlives in steps ${born} to ${died - 1}\n` +
      `${bytes(size)} at offset ${bytes(offset)} in ${panel.memory}\nstep ${step} runs ${data.operators[data.steps[step]]}`;
    tip.hidden = false;
    tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
    tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + "px";
    for (const [key, value] of [["x", left + born * perStep], ["y", bottom - (offset + size) * perByte],
      ["width", (died - born) * perStep], ["height", size * perByte]]) hit.setAttribute(key, value);
  };
  svg.addEventListener("mousemove", show);
  svg.addEventListener("mouseleave", hide);
}
document.addEventListener("click", async (event) => {
  const tip = document.getElementById("tip"), command = event.target.closest("[data-command]")?.dataset.command;
  tip.hidden = !command;
  if (!command) return;
  tip.textContent = command;
  tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = event.clientY + 14 + "px";
  try {
    await navigator.clipboard.writeText(command);
    tip.textContent += "\ncopied";
  } catch { /* without the clipboard the text stays, to be selected */ }
});
