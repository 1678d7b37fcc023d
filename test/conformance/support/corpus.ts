/** An invalid request body. Its content type is JSON by default. */
export interface InvalidBody {
  body: string | Uint8Array
  type?: string
}

export type DeriveInvalid = (valid: object) => InvalidBody[]

const bodiesOf = (bodies: (string | Uint8Array)[]): InvalidBody[] => bodies.map((body) => ({ body }))

const withField = (valid: object, name: string, value: string): string => {
  const members = Object.entries(valid).filter(([other]) => other !== name)
  return `{${[...members.map(([key, member]) => `"${key}":${JSON.stringify(member)}`), `"${name}":${value}`].join()}}`
}

const inEachField = (valid: object, value: string): string[] =>
  Object.keys(valid).map((name) => withField(valid, name, value))

export const notAnObject: DeriveInvalid = (valid) => {
  const text = JSON.stringify(valid)
  const brokenTexts = [
    '{',
    '}',
    text.slice(0, -1),
    `${text}}`,
    `${text}\n${text}`,
    '{"a":}',
    "{'a':1}",
    '{"a":1,}',
    'NaN',
  ]
  const otherBodies = ['', ' ', 'null', 'true', '7', '"text"', '[]', `[${text}]`, '\0', `\u{FEFF}${text}`]
  // A gateway that forwards bodies as text replaces invalid UTF-8 with U+FFFD.
  const notUtf8 = [Buffer.from(text, 'utf16le'), Buffer.from(`${text}\u00ff`, 'latin1')]
  return bodiesOf([...brokenTexts, ...otherBodies, ...notUtf8])
}

export const otherContentType: DeriveInvalid = (valid) => {
  const similar = ['application/json; charset=utf-16', 'application/jsonx', 'application/problem+json', 'json']
  const others = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/xml', '']
  return [...similar, ...others].map((type) => ({ body: JSON.stringify(valid), type }))
}

const typeOf = (value: unknown): string => (Array.isArray(value) ? 'array' : typeof value)

/** Sets all fields to the same invalid value. Omits an empty object or array if it would be valid for every field. */
export const wrongType: DeriveInvalid = (valid) => {
  const isValid = (empty: unknown) => Object.values(valid).every((member) => typeOf(member) === typeOf(empty))
  const emptyValues = ['{}', '[]'].filter((value) => !isValid(JSON.parse(value)))
  const values = ['null', 'true', '-1', '1.5', ...emptyValues, '[[]]', '{"length":1}', '{"toString":1}']
  const names = Object.keys(valid)
  return bodiesOf(values.map((value) => `{${names.map((name) => `"${name}":${value}`).join()}}`))
}

export const unusualText: DeriveInvalid = (valid) => {
  const texts = String.raw`"\u0000" "a\u0000b" "\ud800" "\udc00\ud800" "a\u001b[2Jb" "a\u2028b"`
  return bodiesOf(texts.split(' ').flatMap((text) => inEachField(valid, text)))
}

/** Values that parsers and stores treat differently, in each field and in an unknown one. */
export const ambiguousValues: DeriveInvalid = (valid) => {
  const lists = '['.repeat(10_000) + ']'.repeat(10_000)
  const objects = `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`
  const others = ['1e400', '-1e400', '12345678901234567890', '{"__proto__":{"a":1}}', String.raw`"\udfff"`]
  const inFields = [lists, objects, ...others].flatMap((value) => inEachField({ ...valid, unknown: 0 }, value))
  const names = [withField(valid, '__proto__', '{"isAdmin":true}'), withField(valid, String.raw`\ud800`, '1')]
  return bodiesOf([...inFields, ...names])
}

export const tooLarge: DeriveInvalid = (valid) =>
  bodiesOf([
    withField(valid, 'unknown', `"${'x'.repeat(4 * 1024 * 1024)}"`),
    JSON.stringify(valid) + ' '.repeat(5_000_000),
    withField(valid, 'unknown', `"${'x'.repeat(7_000_000)}"`),
  ])
