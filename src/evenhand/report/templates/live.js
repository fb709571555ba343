"use strict";
// The page is made anew by the service; what is typed into it stays.
async function refresh() {
  try {
    const page = new DOMParser().parseFromString(await (await fetch("/")).text(), "text/html");
    document.getElementById("live").replaceWith(page.getElementById("live"));
  } catch (error) { /* the service is away: the next time */ }
}
setInterval(refresh, 3000);
document.getElementById("look").addEventListener("submit", async (event) => {
  event.preventDefault();
  const found = document.getElementById("found");
  const answer = await fetch("/decision?id=" + encodeURIComponent(document.getElementById("id").value));
  const told = await answer.json();
  found.textContent = answer.ok
    ? `${told.action} with probability ${told.probability.toFixed(3)}, group ${told.group}, version ${told.version}. ` +
      Object.entries(told.by_group).map(([group, said]) => `As ${group}: ` +
        Object.entries(said).map(([action, chance]) => `${action} ${chance.toFixed(3)}`).join(", ")).join(". ") + "."
    : "There is no decision with this id.";
});
