"use strict";
// Where a table is wider than its place: a mark for the shadow, and a stop for the keyboard; elsewhere neither.
const markScrolling = (() => {
  const mark = (box) => {
    const before = box.scrollLeft > 1, after = box.scrollLeft + box.clientWidth < box.scrollWidth - 1;
    if (before || after) { box.dataset.more = before && after ? "both" : before ? "left" : "right"; box.tabIndex = 0; }
    else { delete box.dataset.more; box.removeAttribute("tabindex"); }
  };
  const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => mark(target.closest(".scroll"))));
  return (place) => place.querySelectorAll(".scroll").forEach((box) => {
    box.addEventListener("scroll", () => mark(box), { passive: true });
    [box, ...box.children].forEach((each) => sizes.observe(each));
    mark(box);
  });
})();
