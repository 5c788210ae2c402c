"use strict";
// The page is whole without this script; it chooses, slides and points.
document.documentElement.classList.add("script");

const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];

// One member at a time, in every part of a run.
for (const run of all("section.run")) {
  const show = (member) =>
    all(".member", run).forEach((part) => part.classList.toggle("shown", part.dataset.member === member));
  const choose = run.querySelector(".choose-member");
  show("0");
  if (choose) choose.addEventListener("change", () => show(choose.value));
}

// One latent of a member in large, at the step of the slider.
for (const stage of all(".stage")) {
  const member = stage.parentElement;
  const latents = all(".latent", member);
  const slider = stage.querySelector(".slider");
  const [mean, samples] = [stage.querySelector("canvas.mean"), stage.querySelector("canvas.samples")];
  let chosen = null;

  const draw = () => {
    const about = JSON.parse(chosen.dataset.about);
    const sheet = chosen.querySelector("img");
    const step = Number(slider.value);
    const [w, h, n] = about.size;
    const columns = Math.ceil(n / 2);
    Object.assign(mean, { width: w, height: h });
    Object.assign(samples, { width: columns * (w + 1) - 1, height: 2 * h + 1 }); // a line between the frames
    mean.getContext("2d").drawImage(sheet, step * w, 0, w, h, 0, 0, w, h);
    for (let s = 0; s < n; s++)
      samples.getContext("2d").drawImage(
        sheet, step * w, (1 + s) * h, w, h, (s % columns) * (w + 1), Math.floor(s / columns) * (h + 1), w, h);
    stage.querySelector(".value").textContent = `${about.values[step].toFixed(2)}, ${about.counts[step]} frames`;
    for (const row of all(".factor", stage)) {
      const j = Number(row.dataset.factor);
      const [m, s, low, high] = [about.means[step][j], about.stds[step][j], about.low[j], about.high[j]];
      const place = (x) => Math.min(Math.max((x - low) / Math.max(high - low, 1e-9), 0), 1) * 100;
      row.classList.toggle("own", about.own === j);
      row.querySelector(".mark").style.left = `${place(m)}%`;
      row.querySelector(".band").style.left = `${place(m - s)}%`;
      row.querySelector(".band").style.width = `${place(m + s) - place(m - s)}%`;
      row.querySelector("output").textContent = `${m.toFixed(2)} ± ${s.toFixed(2)}`;
    }
  };

  const choose = (latent) => {
    chosen = latent;
    latents.forEach((one) => one.classList.toggle("chosen", one === latent));
    buttons.forEach((button, n) => button.setAttribute("aria-pressed", String(latents[n] === latent)));
    const steps = JSON.parse(latent.dataset.about).values.length;
    slider.max = String(steps - 1);
    slider.value = String(Math.min(Number(slider.value), steps - 1));
    latent.querySelector("img").decode().then(draw, draw);
  };

  const buttons = latents.map((latent) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = latent.querySelector("figcaption").firstChild.textContent;
    button.addEventListener("click", () => choose(latent));
    latent.addEventListener("click", () => choose(latent));
    stage.querySelector(".buttons").append(button);
    return button;
  });
  slider.addEventListener("input", draw);
  choose(latents[0]);
}

// A cell says its numbers at once, instead of after the browser's pause.
const tip = document.getElementById("tip");
for (const cell of all("td[data-value]")) {
  cell.dataset.tip = cell.title;
  cell.removeAttribute("title");
  cell.addEventListener("mousemove", (event) => {
    tip.textContent = cell.dataset.tip;
    tip.hidden = false;
    const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
    tip.style.left = `${left}px`;
    tip.style.top = `${event.clientY + 16}px`;
  });
  cell.addEventListener("mouseleave", () => { tip.hidden = true; });
}
