// A long plain text that scrolls in its own frame, also from the keyboard.
export default function ({ data, parentElement }) {
  const box = parentElement.querySelector("pre")
  box.setAttribute("aria-label", data.name)
  box.textContent = data.text
}
