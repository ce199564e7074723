// What is wrong with the page on screen, as sentences: read by tests/browser/test_screens.py. Looks into shadow roots too.
() => {
  const problems = []
  const all = []
  const walk = root => {
    for (const node of root.querySelectorAll("*")) {
      all.push(node)
      if (node.shadowRoot) walk(node.shadowRoot)
    }
  }
  walk(document.body)
  const isHidden = node => {
    for (let at = node; at; at = at.parentElement || at.getRootNode().host) {
      if (at.getAttribute?.("aria-hidden") === "true" || at.hidden) return true
    }
    return node.getClientRects().length === 0
  }
  const byId = (node, ids) => (ids || "").split(/\s+/).map(id => id && node.getRootNode().getElementById?.(id)?.textContent).join(" ")
  const name = node => [
    node.getAttribute("aria-label"), byId(node, node.getAttribute("aria-labelledby")), node.getAttribute("alt"),
    node.getAttribute("title"), node.caption?.textContent, [...(node.labels || [])].map(label => label.textContent).join(" "),
    node.matches("button, a, [role=button], [role=tab], [role=option]") ? node.textContent : "",
    ...[...node.querySelectorAll("[aria-label], [alt]")].map(inner =>
      node.matches("button, a") ? inner.getAttribute("aria-label") || inner.getAttribute("alt") : ""),
  ].join(" ").trim()
  const named = "button, a[href], input:not([type=hidden]), select, textarea, img, table, canvas, iframe, " +
    "[role=button], [role=img], [role=figure], [role=table], [role=tab], [role=combobox], [role=dialog]"
  const show = node => node.cloneNode(false).outerHTML.slice(0, 160)
  for (const node of all) {
    if (!node.matches(named) || isHidden(node)) continue
    // A canvas or picture inside of something that has a name is told by that name.
    if (node.matches("canvas, img") && node.closest("[role=img], [role=figure], button, a, [aria-label]")) continue
    if (!name(node)) problems.push(`no name: ${show(node)}`)
  }
  const heads = all.filter(node => node.matches("h1, [role=heading][aria-level='1']") && !isHidden(node))
  if (heads.length !== 1) problems.push(`${heads.length} headings of level 1: ${heads.map(head => head.textContent).join(" | ")}`)
  const wide = document.scrollingElement.scrollWidth - window.innerWidth
  if (wide > 0) problems.push(`the page is ${wide} px too wide`)
  const main = document.querySelector('[data-testid="stMain"]')
  if (main && main.scrollWidth > main.clientWidth) {
    const edge = main.getBoundingClientRect().right
    const outer = all.filter(node => !isHidden(node) && node.getBoundingClientRect().right > edge + 1).slice(0, 2)
    problems.push(`the main part scrolls sideways: ${outer.map(show).join(" ")}`)
  }
  if (document.querySelector('[data-testid="stException"]')) problems.push("an exception is on the page")
  return problems
}
