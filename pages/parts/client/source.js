// Numbered source lines; each line comes escaped from the server.
export default function ({ data, parentElement }) {
  const box = parentElement.querySelector("pre")
  box.innerHTML = data.lines.map(line => `<span class="line">${line}\n</span>`).join("")
}
