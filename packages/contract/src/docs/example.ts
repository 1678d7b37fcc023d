import { type ApiDocument, type Entry, jsonOf, parametersOf } from './document.ts'

const schemeOf = (document: ApiDocument, { security = [] }: Entry['operation']): string | undefined => {
  const [name] = Object.keys(security[0] ?? {})
  if (name === undefined) return undefined
  return document.components.securitySchemes[name]?.scheme === 'bearer' ? 'Bearer' : 'Relay'
}

const pathOf = (document: ApiDocument, { path, operation }: Entry): string =>
  path.replaceAll(/\{(\w+)\}/g, (placeholder, name: string) => {
    const isNamed = (parameter: { in: string; name: string }) => parameter.in === 'path' && parameter.name === name
    const parameter = parametersOf(document, operation).find(isNamed)
    return parameter ? String(parameter.schema.example) : placeholder
  })

const bodyOf = ({ operation }: Entry): string | undefined => {
  const media = jsonOf(operation.requestBody?.content)
  return media && JSON.stringify(media.example, null, 2)
}

const shellQuote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** Returns the request of an operation as a curl command. */
export function curlCommand(document: ApiDocument, entry: Entry): string {
  const body = bodyOf(entry)
  const scheme = schemeOf(document, entry.operation)
  return [
    `curl ${entry.method === 'GET' ? '' : `-X ${entry.method} `}"$PLATFORM${pathOf(document, entry)}"`,
    ...(scheme === undefined ? [] : [`-H "Authorization: ${scheme} $TOKEN"`]),
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json'`, `-d ${shellQuote(body)}`]),
  ].join(' \\\n  ')
}

const indent = (text: string): string => text.replaceAll('\n', '\n  ')

/** Returns the request of an operation as JavaScript code. */
export function javascriptRequest(document: ApiDocument, entry: Entry): string {
  const body = bodyOf(entry)
  const scheme = schemeOf(document, entry.operation)
  const headers = [
    ...(scheme === undefined ? [] : [`authorization: \`${scheme} \${token}\``]),
    ...(body === undefined ? [] : [`'content-type': 'application/json'`]),
  ]
  const options = [
    ...(entry.method === 'GET' ? [] : [`method: '${entry.method}'`]),
    ...(headers.length === 0 ? [] : [`headers: { ${headers.join(', ')} }`]),
    ...(body === undefined ? [] : [`body: JSON.stringify(${indent(body)})`]),
  ]
  const argument = options.length === 0 ? '' : `, {\n  ${options.join(',\n  ')},\n}`
  return `const response = await fetch(\`\${platform}${pathOf(document, entry)}\`${argument})`
}
