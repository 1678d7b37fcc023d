// Imported first, because it sets the allowed registries, which core reads when it is imported.
import { moduleWorld } from '../../functions/module-world.ts'
import { Session } from 'node:inspector/promises'
import * as fc from 'fast-check'
import { afterAll, beforeAll, test } from 'vitest'
import { operationNamed } from '../../functions/operations.ts'
import { writes } from '../../functions/writes.ts'
import { readTable } from '../../support/read-table.ts'
import { send, type TestResponse } from '../../support/request.ts'
import { claimAtMost, claimNone } from '../support/claims.ts'
import { amount, isShort, print, seed } from '../support/run.ts'
import { marker } from './body.ts'
import { mutationOf } from './mutation.ts'
import { contractViolation, document, isMalformed, operations } from './oracle.ts'
import { type Operation, toWire, type ValidRequest, type Wire } from './request.ts'
import { newSender, type Sender, withoutSuccess } from './senders.ts'

const requestsPerOperation = amount(20_000, 8)
/** Later requests use a new sender, because earlier ones delete or end what a sender has. */
const requestsPerSender = 250
const memoryLimitMb = 50

const prototypes = [Object, Array, Function, String, Number, Promise].map(({ prototype }) => prototype as object)
const prototypeMembers = (): string => prototypes.map((each) => Reflect.ownKeys(each).map(String).join()).join(' ')
const initialMembers = prototypeMembers()

/** Errors that reject a request before it has an effect. */
const formErrors = ['invalid_json', 'unsupported_media_type', 'validation_failed', 'invalid_path', 'payload_too_large']

async function sendWire(operation: Operation, { authenticate, address }: Sender, wire: Wire) {
  const headers = { ...(await authenticate(wire)), ...wire.headers }
  const target = wire.query === '' ? wire.path : `${wire.path}?${wire.query}`
  const writesBefore = writes()
  const response = await send(operationNamed(operation.name).handler, {
    method: operation.method,
    target,
    ...wire,
    headers,
    address,
  })
  return { response, writeCount: writes() - writesBefore }
}

function failureOf(operation: Operation, wire: Wire, response: TestResponse, writeCount: number): string | undefined {
  const { status, json, text } = response
  if (status >= 500) return `server error: ${text}`
  if (status < 300 && isMalformed(operation, wire)) return `accepted: ${text}`
  if (writeCount > 0 && formErrors.includes(json?.error)) return `rejected after ${writeCount} writes`
  if (prototypeMembers() !== initialMembers || 'polluted' in {}) return 'changed a prototype'
  return contractViolation(operation, wire, response)
}

const describeWire = (wire: Wire): string =>
  JSON.stringify({ ...wire, body: wire.body && Buffer.from(wire.body).toString().slice(0, 600) })

/** For an operation with neither parameters nor a body, every changed request counts as malformed. */
const hasNoInput = ({ parameters, body }: Operation): boolean => parameters.length === 0 && body === undefined

/**
 * Percentage of well-formed requests that are sent. The share is low, because these requests have effects and may hash
 * passwords.
 */
const wellFormedShare = ({ body }: ValidRequest): number => (JSON.stringify(body ?? '').includes('assword') ? 1 : 5)

async function fuzz(operation: Operation, count: number): Promise<void> {
  const testedOperation = operationNamed(operation.name)
  const mutationArbitrary = mutationOf(document, operation)
  let sender = await newSender(testedOperation)
  const sentCounts = { requests: 0, malformed: 0 }
  const { response } = await sendWire(operation, sender, toWire(operation, sender.valid))
  if (response.status >= 400 && !withoutSuccess.has(operation.name))
    throw new Error(`The valid request fails: ${response.status} ${response.text}`)
  const mutations = fc.array(mutationArbitrary, { minLength: 1, maxLength: 2 })
  const property = fc.asyncProperty(mutations, fc.noBias(fc.nat(99)), async (changes, percentile) => {
    if (++sentCounts.requests % requestsPerSender === 0) sender = await newSender(testedOperation)
    const { valid } = sender
    const wire = changes.reduce((sent, change) => change(sent, valid), toWire(operation, valid))
    const isCounted = hasNoInput(operation) || isMalformed(operation, wire)
    fc.pre(isCounted || percentile < wellFormedShare(valid))
    if (isCounted) sentCounts.malformed++
    const result = await sendWire(operation, sender, wire)
    const failure = failureOf(operation, wire, result.response, result.writeCount)
    if (failure !== undefined) throw new Error(`${failure.slice(0, 600)}\n${describeWire(wire)}`)
  })
  for (let round = seed; sentCounts.malformed < count; round++)
    await fc.assert(property, { numRuns: count - sentCounts.malformed, seed: round, maxSkipsPerRun: 1000 })
}

/** Returns the memory of this thread. Another thread of the process runs the emulators. */
async function measureMemoryMb(): Promise<number> {
  const session = new Session()
  session.connect()
  await session.post('HeapProfiler.collectGarbage')
  session.disconnect()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 1_000_000
}

async function countMarkedItems(): Promise<number> {
  const setsAsArrays = (_: string, value: unknown): unknown => (value instanceof Set ? [...value] : value)
  return (await readTable()).filter((item) => JSON.stringify(item, setsAsArrays).includes(marker)).length
}

/** Declares the tests of every 2nd operation (short runs: 12th), from an offset, so that two files share the work. */
export function fuzzOperations(offset: number): void {
  const part = operations.filter((_, index) => index % (isShort ? 12 : 2) === offset)
  let initialMemoryMb = 0

  beforeAll(async () => {
    // Load and compile all code before the first memory measurement.
    if (!isShort) for (const operation of part) await fuzz(operation, 1000)
    initialMemoryMb = await measureMemoryMb()
  })

  test.each(part)('$name rejects malformed requests as documented, without a write', async (operation) => {
    await fuzz(operation, requestsPerOperation)
  })

  test('malformed requests leave no undocumented data in the store and do not leak memory', async () => {
    print(`Each of ${part.length} operations rejected ${requestsPerOperation} malformed requests.`)
    claimNone('stored items with undocumented request members', await countMarkedItems())
    if (!isShort) claimAtMost('growth of memory', (await measureMemoryMb()) - initialMemoryMb, memoryLimitMb, ' MB')
  })

  afterAll(() => moduleWorld[Symbol.asyncDispose]())
}
