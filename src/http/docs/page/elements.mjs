// Builds elements of the page. Text is always text: no function here parses HTML.

/**
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Record<string, string>} [attributes]
 * @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function createElement(name, attributes = {}, ...children) {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  element.append(...children)
  return element
}

/**
 * An input with its label.
 * @param {string} label
 * @param {Record<string, string>} attributes
 */
export function createInput(label, attributes) {
  const input = createElement('input', attributes)
  return { input, row: createElement('label', {}, label, input) }
}

/**
 * A form that shows the message of a failed submission.
 * @param {{ rows: Node[], button: string, submit: () => Promise<void> }} parts
 */
export function createForm({ rows, button, submit }) {
  const message = createElement('p', { role: 'alert', class: 'error' })
  const form = createElement(
    'form',
    {},
    ...rows,
    createElement('button', { type: 'submit' }, button),
    message,
  )
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    message.textContent = ''
    submit().catch((error) => {
      message.textContent = describeFailure(error)
    })
  })
  return form
}

/** @param {unknown} error */
export function describeFailure(error) {
  return error instanceof Error ? error.message : String(error)
}
