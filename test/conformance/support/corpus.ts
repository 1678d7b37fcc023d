/** Bodies that no operation may take, made from a body that is good. */

/** A body, and its content type where that is not JSON. */
export interface BadBody {
  body: string | Uint8Array
  type?: string
}

export type MakeBad = (good: object) => BadBody[]

const all = (bodies: (string | Uint8Array)[]): BadBody[] => bodies.map((body) => ({ body }))

/** JSON text of an object, from the JSON text of its members. */
const objectOf = (members: [name: string, value: string][]): string =>
  `{${members.map(([name, value]) => `"${name}":${value}`).join()}}`

const withField = (object: object, name: string, value: string): string => {
  const members = Object.entries(object).map(([key, member]): [string, string] => [key, JSON.stringify(member)])
  return objectOf([...members, [name, value]])
}

/** The good body once for each of its fields, with another value in the place of that field. */
const inEachField = (good: object, value: string): string[] =>
  Object.keys(good).map((name) => {
    const others = Object.entries(good).filter(([other]) => other !== name)
    return withField(Object.fromEntries(others), name, value)
  })

/** What is no JSON, and JSON that is no object. */
export const notAnObject: MakeBad = (good) => {
  const text = JSON.stringify(good)
  const broken = ['{', '}', text.slice(0, -1), `${text}}`, `${text}\n${text}`, '{"a":}', "{'a':1}", '{"a":1,}', 'NaN']
  const others = ['', ' ', 'null', 'true', '7', '"text"', '[]', `[${text}]`, '\0', `\u{FEFF}${text}`]
  // Inside of a text, a gateway that hands bodies on as text puts U+FFFD in the place of what is no UTF-8.
  const notUtf8 = [Buffer.from(text, 'utf16le'), Buffer.from(`${text}\u00ff`, 'latin1')]
  return all([...broken, ...others, ...notUtf8])
}

/** A good body under another name. */
export const notJson: MakeBad = (good) => {
  const near = ['application/json; charset=utf-16', 'application/jsonx', 'application/problem+json', 'json']
  const far = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/xml', '']
  return [...near, ...far].map((type) => ({ body: JSON.stringify(good), type }))
}

const kindOf = (value: unknown): string => (Array.isArray(value) ? 'array' : typeof value)

/** All fields of one and the same type: some of them expect another. What is empty may be what all of them expect. */
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

/** Values that parsers, stores and languages treat differently, in each field and in one that nobody knows. */
export const treacherous: MakeBad = (good) => {
  const lists = '['.repeat(10_000) + ']'.repeat(10_000)
  const objects = `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`
  const others = ['1e400', '-1e400', '12345678901234567890', '{"__proto__":{"a":1}}', String.raw`"\udfff"`]
  const values = [lists, objects, ...others]
  const inFields = values.flatMap((value) => inEachField({ ...good, unknown: 0 }, value))
  return all([...inFields, withField(good, '__proto__', '{"isAdmin":true}'), withField(good, String.raw`\ud800`, '1')])
}

/** More than 4 MiB: of text, of white space, and more than a gateway takes. */
export const large: MakeBad = (good) =>
  all([
    withField(good, 'unknown', `"${'x'.repeat(4 * 1024 * 1024)}"`),
    JSON.stringify(good) + ' '.repeat(5_000_000),
    withField(good, 'unknown', `"${'x'.repeat(7_000_000)}"`),
  ])
