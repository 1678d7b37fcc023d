/** Invalid request bodies, derived from a valid one. */

/** A body and its content type; the default is JSON. */
export interface BadBody {
  body: string | Uint8Array
  type?: string
}

export type MakeBad = (good: object) => BadBody[]

const all = (bodies: (string | Uint8Array)[]): BadBody[] => bodies.map((body) => ({ body }))

const objectOf = (members: [name: string, value: string][]): string =>
  `{${members.map(([name, value]) => `"${name}":${value}`).join()}}`

const withField = (object: object, name: string, value: string): string => {
  const members = Object.entries(object).map(([key, member]): [string, string] => [key, JSON.stringify(member)])
  return objectOf([...members, [name, value]])
}

/** The valid body with a replaced value, once for each field. */
const inEachField = (good: object, value: string): string[] =>
  Object.keys(good).map((name) => {
    const others = Object.entries(good).filter(([other]) => other !== name)
    return withField(Object.fromEntries(others), name, value)
  })

/** Texts that are not JSON, and JSON that is not an object. */
export const notAnObject: MakeBad = (good) => {
  const text = JSON.stringify(good)
  const broken = ['{', '}', text.slice(0, -1), `${text}}`, `${text}\n${text}`, '{"a":}', "{'a':1}", '{"a":1,}', 'NaN']
  const others = ['', ' ', 'null', 'true', '7', '"text"', '[]', `[${text}]`, '\0', `\u{FEFF}${text}`]
  // A gateway that forwards bodies as text replaces invalid UTF-8 with U+FFFD.
  const notUtf8 = [Buffer.from(text, 'utf16le'), Buffer.from(`${text}\u00ff`, 'latin1')]
  return all([...broken, ...others, ...notUtf8])
}

/** Valid JSON with another content type. */
export const notJson: MakeBad = (good) => {
  const near = ['application/json; charset=utf-16', 'application/jsonx', 'application/problem+json', 'json']
  const far = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/xml', '']
  return [...near, ...far].map((type) => ({ body: JSON.stringify(good), type }))
}

const kindOf = (value: unknown): string => (Array.isArray(value) ? 'array' : typeof value)

/** All fields with values of one type. Empty values may be valid. */
export const wrongType: MakeBad = (good) => {
  const isFitting = (empty: unknown) => Object.values(good).every((member) => kindOf(member) === kindOf(empty))
  const empty = ['{}', '[]'].filter((value) => !isFitting(JSON.parse(value)))
  const values = ['null', 'true', '-1', '1.5', ...empty, '[[]]', '{"length":1}', '{"toString":1}']
  return all(values.map((value) => objectOf(Object.keys(good).map((name) => [name, value]))))
}

/** NUL, lone surrogates, control characters and separators in each field. */
export const strangeText: MakeBad = (good) => {
  const texts = String.raw`"\u0000" "a\u0000b" "\ud800" "\udc00\ud800" "a\u001b[2Jb" "a\u2028b"`
  return all(texts.split(' ').flatMap((text) => inEachField(good, text)))
}

/** Values that parsers and stores treat differently, in each field and in an unknown one. */
export const treacherous: MakeBad = (good) => {
  const lists = '['.repeat(10_000) + ']'.repeat(10_000)
  const objects = `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`
  const others = ['1e400', '-1e400', '12345678901234567890', '{"__proto__":{"a":1}}', String.raw`"\udfff"`]
  const values = [lists, objects, ...others]
  const inFields = values.flatMap((value) => inEachField({ ...good, unknown: 0 }, value))
  return all([...inFields, withField(good, '__proto__', '{"isAdmin":true}'), withField(good, String.raw`\ud800`, '1')])
}

/** Bodies of more than 4 MiB. */
export const large: MakeBad = (good) =>
  all([
    withField(good, 'unknown', `"${'x'.repeat(4 * 1024 * 1024)}"`),
    JSON.stringify(good) + ' '.repeat(5_000_000),
    withField(good, 'unknown', `"${'x'.repeat(7_000_000)}"`),
  ])
