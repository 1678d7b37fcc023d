/** Markup that is rendered unchanged. The constructor does not escape it. */
export class Html {
  readonly markup: string

  constructor(markup: string) {
    this.markup = markup
  }
}

/** Value of a template parameter. `false` and `undefined` render nothing; lists are concatenated. */
export type Content = Html | string | number | false | undefined | readonly Content[]

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

const escape = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '')

function render(content: Content): string {
  if (content === undefined || content === false) return ''
  if (content instanceof Html) return content.markup
  if (typeof content === 'object') return content.map(render).join('')
  return escape(String(content))
}

/** Template tag that creates markup and escapes the text of its parameters. */
export const html = (parts: TemplateStringsArray, ...contents: Content[]): Html =>
  new Html(String.raw({ raw: parts }, ...contents.map(render)))
