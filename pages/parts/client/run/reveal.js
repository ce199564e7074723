// A person who opened a kernel is taken to it where it is not in sight: under the curve on a narrow screen, or above a
// long table.
export default function ({ data, parentElement }) {
  if (parentElement.shown === data.id) return
  parentElement.shown = data.id
  if (!navigator.userActivation?.hasBeenActive) return
  const host = parentElement.getRootNode().host ?? parentElement
  const panel = host.closest(".st-key-kernel_panel")
  const top = panel?.getBoundingClientRect().top
  if (top < 0 || top > 0.7 * window.innerHeight) panel.scrollIntoView({ block: "start" })
}
