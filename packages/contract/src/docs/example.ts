import { type ApiDocument, type Entry, jsonOf, parametersOf } from './document.ts'

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

function authorization(document: ApiDocument, { security = [] }: Entry['operation']): string[] {
  const [name] = Object.keys(security[0] ?? {})
  if (name === undefined) return []
  const scheme = document.components.securitySchemes[name]?.scheme === 'bearer' ? 'Bearer' : 'Relay'
  return [`-H "Authorization: ${scheme} $TOKEN"`]
}

function url(document: ApiDocument, { path, operation }: Entry): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (whole, name: string) => {
    const parameter = parametersOf(document, operation).find(
      (candidate) => candidate.in === 'path' && candidate.name === name,
    )
    return parameter ? String(parameter.schema.example) : whole
  })
  return `"$PLATFORM${filled}"`
}

/** The request of an operation as a curl command. */
export function curl(document: ApiDocument, entry: Entry): string {
  const media = jsonOf(entry.operation.requestBody?.content)
  const body = media && quoted(JSON.stringify(media.example, null, 2))
  const words = [
    `curl ${entry.method === 'GET' ? '' : `-X ${entry.method} `}${url(document, entry)}`,
    ...authorization(document, entry.operation),
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json'`, `-d ${body}`]),
  ]
  return words.join(' \\\n  ')
}
