/** Escaped markup. Only `html` creates it, so all other text is escaped. */
export class Html {
  readonly markup: string

  constructor(markup: string) {
    this.markup = markup
  }
}

/** A template parameter: text, markup, nothing, or a list of these. */
export type Content = Html | string | number | false | undefined | readonly Content[]

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** Escapes text for elements and quoted attributes. */
const escape = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '')

function render(content: Content): string {
  if (content === undefined || content === false) return ''
  if (content instanceof Html) return content.markup
  if (typeof content === 'object') return content.map(render).join('')
  return escape(String(content))
}

/** A template tag that escapes its parameters. */
export const html = (parts: TemplateStringsArray, ...contents: Content[]): Html =>
  new Html(String.raw({ raw: parts }, ...contents.map(render)))
