/** Markup that is safe to send. Only `html` makes it, so text of any origin is escaped unless it came from here. */
export class Html {
  readonly markup: string

  constructor(markup: string) {
    this.markup = markup
  }
}

/** What may stand in a template: text, markup, nothing, or a list of those. */
export type Content = Html | string | number | false | undefined | readonly Content[]

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** Text as HTML shows it, in elements and in quoted attributes. */
const escape = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '')

function render(content: Content): string {
  if (content === undefined || content === false) return ''
  if (content instanceof Html) return content.markup
  if (typeof content === 'object') return content.map(render).join('')
  return escape(String(content))
}

/** A template that escapes whatever is put into it. */
export const html = (parts: TemplateStringsArray, ...contents: Content[]): Html =>
  new Html(String.raw({ raw: parts }, ...contents.map(render)))
