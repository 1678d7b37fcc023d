import { type Html, html } from './html.ts'

const code = /(`[^`]+`|\*\*[^*]+\*\*)/

/** Renders one line of Markdown, of which only `code` and **strong** are supported. */
export const line = (text: string): Html =>
  html`${text.split(code).map((part) => {
    if (part.startsWith('`')) return html`<code>${part.slice(1, -1)}</code>`
    return part.startsWith('**') ? html`<strong>${part.slice(2, -2)}</strong>` : part
  })}`

function block(text: string): Html {
  if (!text.startsWith('- ')) return html`<p>${line(text)}</p>`
  return html`<ul>
    ${text.split('\n').map((item) => html`<li>${line(item.slice(2))}</li>`)}
  </ul>`
}

/** Renders the Markdown of descriptions: paragraphs and lists, with code and strong text. */
export const prose = (text: string | undefined): Html => html`${(text ?? '').split('\n\n').filter(Boolean).map(block)}`
