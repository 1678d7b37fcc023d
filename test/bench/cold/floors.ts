/** Bare handlers that begin as a function does: with the same clients of AWS, the same first calls, and nothing else. */

/** A client of AWS beside that of the table, which every function has. */
export interface Client {
  /** The package, without `@aws-sdk/client-`. */
  name: string
  type: string
  /** What the first event of a function asks by it, where it does: the name of a command, and its input. */
  firstCall?: readonly [string, string]
}

const sqs: Client = { name: 'sqs', type: 'SQSClient' }
const secrets: Client = { name: 'secrets-manager', type: 'SecretsManagerClient' }
const lambda: Client = { name: 'lambda', type: 'LambdaClient' }

/** Credentials of a registry that has none, as those have it that ask one. */
const askSecret: Client = { ...secrets, firstCall: ['GetSecretValueCommand', `{ SecretId: 'platform/registries' }`] }
const askLambda: Client = { ...lambda, firstCall: ['ListFunctionsCommand', '{}'] }

/** Clients that a function asks something by its first answer; some it loads no earlier. */
const asked: Record<string, readonly Client[]> = {
  'schedule/heartbeat': [askLambda],
  'schedule/catalog': [askSecret],
  'schedule/updates': [askSecret],
  updates: [askSecret],
}

/** The clients that a function has used or could use by its first answer. */
export function clientsOf(name: string, sources: readonly string[]): Client[] {
  const calls = asked[name] ?? []
  const had = [sqs, secrets, lambda].filter((client) =>
    sources.some((path) => path.includes(`/client-${client.name}/`)),
  )
  return [...had.filter((client) => calls.every((call) => call.name !== client.name)), ...calls]
}

/** What a floor is called. */
export const floorName = (handler: string, clients: readonly Client[]): string =>
  ['floor:', handler, ...clients.map(({ name, firstCall }) => `+ ${name}${firstCall ? ', asked' : ''}`)].join(' ')

/** A handler of the floor with clients beside its own. They are made as a process starts, as everybody makes them. */
export const floorProgram = (handler: string, clients: readonly Client[]): string => `
${clients.map(({ name, type, firstCall: [command = ''] = [] }) => `import { ${type}, ${command} } from '@aws-sdk/client-${name}'`).join('\n')}
import { handler as bare } from './${handler}.ts'
export const clients = [${clients.map(({ type }) => `new ${type}()`).join()}]
export async function handler(event) {
  ${clients.map(callOf).join('\n  ')}
  return bare(event)
}`

const callOf = ({ firstCall }: Client, index: number): string =>
  firstCall === undefined
    ? ''
    : `await clients[${index}].send(new ${firstCall[0]}(${firstCall[1]})).catch((error) => { if (!/NotFound/.test(error.name)) throw error })`
