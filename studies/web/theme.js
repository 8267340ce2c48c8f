// The button #theme goes from the system's choice to light to dark; the choice stays where the browser lets it.
const THEMES = ["system", "light", "dark"];

function setTheme(name) {
  const root = document.documentElement;
  if (name === "system") root.removeAttribute("data-theme");
  else root.setAttribute("data-theme", name);
  const button = document.getElementById("theme");
  if (button) button.textContent = `Colours: ${name}`;
}

function keep(key, value) {
  try {
    if (value === undefined) return localStorage.getItem(key);
    localStorage.setItem(key, value);
  } catch { /* a browser that keeps nothing */ }
  return null;
}

let theme = THEMES.includes(keep("halftruth-theme")) ? keep("halftruth-theme") : "system";
setTheme(theme);
document.getElementById("theme")?.addEventListener("click", () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  setTheme(theme);
  keep("halftruth-theme", theme);
});
