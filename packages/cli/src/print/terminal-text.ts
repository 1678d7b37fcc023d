import { escapeCharacter } from './text.ts'

const reset = '\u001b[0m'
const maxStyleLength = 256

// Sequences that set colours and styles (SGR) or erase to the end of the line, line ends, and other characters that
// control a terminal or reorder text.
const tokenPattern =
  // oxlint-disable-next-line no-control-regex -- terminals are controlled by these characters
  /\u001b\[([\d;:]{0,64})m|\u001b\[0?K|\r\n|(?![\n\t])[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]|\n/gu
// oxlint-disable-next-line no-control-regex -- as above
const unfinishedToken = /(?:\u001b(?:\[[\d;:]{0,64})?|\r)$/

/**
 * Makes the output of a script safe for a terminal, piece by piece. Line breaks and, with `hasColor`, colours pass.
 * Other control characters become text, because they can set the clipboard and the title, and change earlier lines.
 * Colours end with each line and piece and continue in the next, so that they do not affect other text.
 */
export class TerminalText {
  readonly #hasColor: boolean
  readonly #keepsReturns: boolean
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  #unfinishedText = ''
  #style = ''

  /** With `keepsReturns`, a carriage return can rewrite its line, as progress bars do. */
  constructor({ hasColor, keepsReturns = false }: { hasColor: boolean; keepsReturns?: boolean }) {
    this.#hasColor = hasColor
    this.#keepsReturns = keepsReturns
  }

  next(bytes: Uint8Array): string {
    const text = this.#unfinishedText + this.#decoder.decode(bytes, { stream: true })
    const [rest = ''] = unfinishedToken.exec(text) ?? []
    this.#unfinishedText = rest
    return this.#convert(text.slice(0, text.length - rest.length))
  }

  end(): string {
    const text = this.#unfinishedText + this.#decoder.decode()
    this.#unfinishedText = ''
    return this.#convert(text)
  }

  #convert(text: string): string {
    if (text === '') return ''
    const before = this.#style
    const shownText = text.replaceAll(tokenPattern, (sequence: string, style: string | undefined) => {
      if (style !== undefined) return this.#applyStyle(sequence, style)
      if (sequence === '\r' && this.#keepsReturns) return sequence
      if (sequence === '\n' || sequence === '\r\n') return this.#style === '' ? '\n' : `${reset}\n${this.#style}`
      return sequence.endsWith('K') ? '' : escapeCharacter(sequence)
    })
    const style = this.#style
    // A colour that is open at the end of a line continues with the next text.
    if (style !== '' && shownText.endsWith(`\n${style}`)) return before + shownText.slice(0, -style.length)
    return before + shownText + (style === '' ? '' : reset)
  }

  #applyStyle(sequence: string, style: string): string {
    if (!this.#hasColor) return ''
    if (/^[0;:]*$/.test(style)) this.#style = ''
    else this.#style = this.#style.length > maxStyleLength ? sequence : this.#style + sequence
    return sequence
  }
}
