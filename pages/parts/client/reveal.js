// On a narrow screen the open kernel stands under the curve: a person who opened one is taken there.
export default function ({ data, parentElement }) {
  if (parentElement.shown === data.id) return
  parentElement.shown = data.id
  if (window.innerWidth > 640 || !navigator.userActivation?.hasBeenActive) return
  const host = parentElement.getRootNode().host ?? parentElement
  host.closest(".st-key-kernel_panel")?.scrollIntoView({ block: "start" })
}
