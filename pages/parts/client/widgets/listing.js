// A long plain text that scrolls in its own frame, also from the keyboard, and is copied by a button.
export default function ({ data, parentElement }) {
  const box = parentElement.querySelector("pre")
  box.setAttribute("aria-label", data.name)
  box.textContent = data.text
  box.classList.toggle("wrapped", data.is_wrapped)
  const button = parentElement.querySelector("button")
  button.setAttribute("aria-label", `Copy: ${data.name}`)
  button.onclick = async () => {
    button.textContent = await navigator.clipboard.writeText(data.text).then(() => "Copied", () => "Not allowed here")
    setTimeout(() => { button.textContent = "Copy" }, 2000)
  }
}
