// A person who opened a kernel is taken to it where it is not in sight: under the curve on a narrow screen, or above a
// long table. Its margin keeps its head clear of the bar of pages.
export default function ({ data, parentElement }) {
  if (parentElement.shown === data.id) return
  parentElement.shown = data.id
  if (!navigator.userActivation?.hasBeenActive) return
  const host = parentElement.getRootNode().host ?? parentElement
  const panel = host.closest(".st-key-kernel_panel")
  if (!panel) return
  const top = panel.getBoundingClientRect().top
  if (top < parseFloat(getComputedStyle(panel).scrollMarginTop) || top > 0.7 * window.innerHeight) panel.scrollIntoView({ block: "start" })
}
