const place = (id) => document.getElementById(id);
// The page is made anew by the service; what is typed into it, and who was looked up, stays.
async function refresh() {
  let state = "live";
  try {
    const answer = await fetch("/");
    if (answer.redirected) return location.assign(answer.url);  // to sign in again: the token has changed
    const made = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
    if (!answer.ok || !made) throw new Error(answer.status);
    const before = [...place("live").querySelectorAll(".scroll")];
    const scrolled = before.map((box) => box.scrollLeft), held = before.indexOf(document.activeElement);
    place("live").replaceWith(made);
    const after = [...made.querySelectorAll(".scroll")];
    after.forEach((box, i) => { box.scrollLeft = scrolled[i] || 0; });
    markScrolling(made);
    if (held >= 0 && after[held]) after[held].focus({ preventScroll: true });
  } catch (error) { state = "the service is away"; }
  if (place("state").textContent !== state) place("state").textContent = state;
  setTimeout(refresh, 3000);
}
setTimeout(refresh, 3000);
markScrolling(document);

// All that comes from the log is put in as text. Marks that hide or turn the direction of writing are written out.
const hidden = /[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\x00-\x08\x0b-\x1f\x7f-\x9f]/g;
const seen = (text) => String(text).replace(hidden, (mark) => `⟨U+${mark.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
function element(name, text, ...inner) {
  const made = document.createElement(name);
  if (text !== null) made.append(Object.assign(document.createElement("bdi"), { textContent: seen(text) }));
  made.append(...inner);
  return made;
}
function table(told) {
  const actions = Object.keys(told.by_group[told.group]);
  const head = element("tr", null, ...["policy of group", ...actions, "would have said"].map((name) => element("th", name)));
  const rows = Object.entries(told.by_group).map(([group, said]) => {
    const instead = told.with_same_draw[group];
    const row = element("tr", null, element("th", group === told.group ? `${group}, their own` : group),
      ...actions.map((action) => element("td", said[action].toFixed(3))), element("td", instead));
    if (group === told.group) row.className = "chosen";
    if (String(instead) !== String(told.action)) row.lastChild.firstChild.className = "differs";
    return row;
  });
  const caption = element("caption", null, Object.assign(document.createElement("span"), { textContent: "What each group's policy says about this person." }));
  const made = element("table", null, caption, element("thead", null, head), element("tbody", null, ...rows));
  made.className = "people";
  const scroll = element("div", null, made);
  scroll.className = "scroll";
  return scroll;
}
place("look").addEventListener("submit", async (event) => {
  event.preventDefault();
  const id = place("id").value;
  try {
    const answer = await fetch("/decision?id=" + encodeURIComponent(id));
    if (!answer.ok) return place("found").replaceChildren(element("p", `There is no decision with the id ${id}.`));
    const told = await answer.json();
    const earned = told.reward !== null ? `earned ${told.reward}` : told.revealed ? "its outcome is awaited" : "reveals no outcome";
    place("found").replaceChildren(
      element("p", `${told.id}: ${told.action}, with probability ${told.probability.toFixed(3)}, by version ${told.version}; ${earned}.`),
      table(told));
    markScrolling(place("found"));
  } catch (error) { place("found").replaceChildren(element("p", "The service is away.")); }
});
