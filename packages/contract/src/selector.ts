/**
 * Label selectors in the grammar of Kubernetes: requirements that are joined by commas.
 *
 *     requirement = key | "!" key | key ("=" | "==" | "!=") value | key ("in" | "notin") "(" value {"," value} ")"
 *
 * White space between tokens has no meaning, and a value may be empty.
 */

/** Pattern of label keys. */
export const labelKeyPattern = /^[a-z0-9]([a-z0-9._/-]{0,61}[a-z0-9])?$/
/** Pattern of label values, which may be empty. */
export const labelValuePattern = /^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/

/** Whether a text is a valid label key, including those of derived labels. */
export const isLabelKey = (text: string): boolean => labelKeyPattern.test(text)

/** Whether a text is a valid label value. */
export const isLabelValue = (text: string): boolean => labelValuePattern.test(text)

/** Whether the platform derives labels with this key, so that callers cannot set them. */
export const isDerivedKey = (key: string): boolean => /^(?:platform|facts)\//.test(key)

/** Rule for label keys, in words. */
export const keyRule =
  'must have 1 to 63 characters of a-z, 0-9, ".", "_", "/" and "-", and begin and end with a letter or digit'

/** Rule for label values, in words. */
export const valueRule =
  'must have at most 63 characters of A-Z, a-z, 0-9, ".", "_" and "-", and begin and end with a letter or digit'

/** Maximum length of a selector, in UTF-16 code units. */
export const maxSelectorLength = 1000
const maxRequirements = 20

/** An error in a selector. `position` counts characters from 1. */
export class SelectorError extends Error {
  readonly position: number
  readonly reason: string

  constructor(position: number, reason: string) {
    super(`At character ${position}: ${reason}`)
    this.name = 'SelectorError'
    this.position = position
    this.reason = reason
  }
}

/** Requires the label `key` with one of `values` (default: any value). `isExcluded` negates the requirement. */
export interface Requirement {
  key: string
  isExcluded: boolean
  values?: ReadonlySet<string>
}

export type Selector = readonly Requirement[]

interface Token {
  text: string
  /** Offset in the selector, from 0. */
  position: number
}

const isSpace = (text: string): boolean => /^[ \t\r\n]/.test(text)
const isSymbol = (text: string): boolean => /^[=!(),]/.test(text)
const isWord = ({ text }: Token): boolean => text !== '' && !isSymbol(text)

/** Splits a selector into tokens. The last token is empty. */
function tokensOf(text: string): Token[] {
  const tokens: Token[] = []
  for (const match of text.matchAll(/[ \t\r\n]+|==|!=|[=!(),]|[^ \t\r\n=!(),]+/g))
    if (!isSpace(match[0])) tokens.push({ text: match[0], position: match.index })
  return [...tokens, { text: '', position: text.length }]
}

class Parser {
  private readonly tokens: Token[]
  private next = 0

  constructor(text: string) {
    this.tokens = tokensOf(text)
  }

  private get token(): Token {
    return this.tokens[this.next] ?? { text: '', position: 0 }
  }

  private take(): Token {
    const { token } = this
    this.next++
    return token
  }

  private takeIf(...texts: string[]): boolean {
    const isNext = texts.includes(this.token.text)
    if (isNext) this.next++
    return isNext
  }

  private unexpectedTokenError(expected: string): SelectorError {
    const { text, position } = this.token
    return new SelectorError(
      position + 1,
      `expected ${expected}, found ${text === '' ? 'the end' : JSON.stringify(text)}`,
    )
  }

  parse(): Selector {
    const requirements: Requirement[] = []
    do {
      if (requirements.length === maxRequirements)
        throw new SelectorError(this.token.position + 1, `a selector can have at most ${maxRequirements} requirements`)
      requirements.push(this.requirement())
    } while (this.takeIf(','))
    if (this.token.text !== '') throw this.unexpectedTokenError('"," or the end')
    return requirements
  }

  private requirement(): Requirement {
    const isExcluded = this.takeIf('!')
    if (!isWord(this.token)) throw this.unexpectedTokenError(isExcluded ? 'a key' : 'a key or "!"')
    const key = this.word(isLabelKey, `the key ${keyRule}`)
    if (isExcluded || this.token.text === '' || this.token.text === ',') return { key, isExcluded }
    if (this.takeIf('=', '==')) return { key, isExcluded, values: new Set([this.value()]) }
    if (this.takeIf('!=')) return { key, isExcluded: true, values: new Set([this.value()]) }
    if (this.takeIf('in')) return { key, isExcluded, values: this.valueSet() }
    if (this.takeIf('notin')) return { key, isExcluded: true, values: this.valueSet() }
    throw this.unexpectedTokenError('"=", "!=", "in", "notin", "," or the end')
  }

  private word(isValid: (text: string) => boolean, rule: string): string {
    const { text, position } = this.take()
    if (!isValid(text)) throw new SelectorError(position + 1, rule)
    return text
  }

  private value(): string {
    if (isWord(this.token)) return this.word(isLabelValue, `the value ${valueRule}`)
    if (['', ',', ')'].includes(this.token.text)) return ''
    throw this.unexpectedTokenError('a value')
  }

  private valueSet(): ReadonlySet<string> {
    if (!this.takeIf('(')) throw this.unexpectedTokenError('"("')
    const values = new Set<string>()
    do values.add(this.value())
    while (this.takeIf(','))
    if (!this.takeIf(')')) throw this.unexpectedTokenError('"," or ")"')
    return values
  }
}

/** Parses a selector. Throws `SelectorError` if it is invalid or has no requirement. */
export function parseSelector(text: string): Selector {
  if (text.length > maxSelectorLength)
    throw new SelectorError(maxSelectorLength + 1, `a selector can have at most ${maxSelectorLength} characters`)
  if (/^[ \t\r\n]*$/.test(text)) throw new SelectorError(1, 'the selector is empty')
  return new Parser(text).parse()
}

/** Whether labels satisfy every requirement. */
export const matchesSelector = (selector: Selector, labels: Readonly<Record<string, string>>): boolean =>
  selector.every(({ key, isExcluded, values }) => {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined
    return (value !== undefined && (values?.has(value) ?? true)) !== isExcluded
  })
