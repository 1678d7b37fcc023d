import { validationError } from './errors.ts'
import { seededRandom } from './random.ts'

/** What the cloud does now and then and a local store never would. Rates are shares of calls, 0 to 1. */
export interface FaultSettings {
  /** Starts the generator of all random choices; setting it starts it again. */
  seed: number
  /** Only these operations suffer; null for every operation a fault can concern. */
  operations: string[] | null
  /** How many more faults strike before all fall silent; null for no end. Index lag does not count. */
  remaining: number | null
  /** Refusals for too many requests. */
  throttleRate: number
  throttleError: 'ProvisionedThroughputExceededException' | 'ThrottlingException'
  /** Entries of a batch handed back as unprocessed; one at least is processed. */
  unprocessedRate: number
  /** TransactionCanceledException for transactions, TransactionConflictException for single writes. */
  transactionConflictRate: number
  /** Writes that are done, but whose connection breaks before the answer. */
  lostAcknowledgementRate: number
  /** Calls that are not done and never answered. */
  hangRate: number
  /** How far global indexes lag behind their table. */
  indexLagMs: number
  /** Leaves expired items in place, as the service may for days. */
  expiryPaused: boolean
}

type FaultKind = 'throttle' | 'unprocessed' | 'transactionConflict' | 'lostAcknowledgement' | 'hang'

const NONE: FaultSettings = {
  seed: 1,
  operations: null,
  remaining: null,
  throttleRate: 0,
  throttleError: 'ProvisionedThroughputExceededException',
  unprocessedRate: 0,
  transactionConflictRate: 0,
  lostAcknowledgementRate: 0,
  hangRate: 0,
  indexLagMs: 0,
  expiryPaused: false,
}

const SINGLE_WRITES = ['PutItem', 'UpdateItem', 'DeleteItem']
const READS = ['GetItem', 'BatchGetItem', 'TransactGetItems', 'Query', 'Scan']
const WRITES = [...SINGLE_WRITES, 'BatchWriteItem', 'TransactWriteItems']

const CONCERNED: Record<FaultKind, string[]> = {
  throttle: [...READS, ...WRITES],
  unprocessed: ['BatchGetItem', 'BatchWriteItem'],
  transactionConflict: ['TransactWriteItems', 'TransactGetItems', ...SINGLE_WRITES],
  lostAcknowledgement: WRITES,
  hang: [...READS, ...WRITES],
}

/** The fault switches of one store. All are off until they are set, and may be set at any time. */
export class Faults {
  #settings: FaultSettings
  #random: () => number
  readonly #listeners: (() => void)[] = []

  constructor(initial: Partial<FaultSettings> = {}) {
    this.#settings = { ...NONE, ...checked(initial) }
    this.#random = seededRandom(this.#settings.seed)
  }

  read(): Readonly<FaultSettings> {
    return this.#settings
  }

  /** Changes the settings that are named and leaves the others. Throws an AwsError for an unknown or bad one. */
  set(changes: Partial<FaultSettings>): Readonly<FaultSettings> {
    this.#settings = { ...this.#settings, ...checked(changes) }
    if (changes.seed !== undefined) this.#random = seededRandom(changes.seed)
    for (const listener of this.#listeners) listener()
    return this.#settings
  }

  /** Switches everything off. */
  reset(): Readonly<FaultSettings> {
    return this.set(NONE)
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  random(): number {
    return this.#random()
  }

  /** Decides whether a fault strikes this time. */
  strikes(kind: FaultKind, operation: string): boolean {
    const { operations, remaining } = this.#settings
    const rate = this.#settings[`${kind}Rate`]
    if (rate === 0 || remaining === 0 || !CONCERNED[kind].includes(operation)) return false
    if (operations && !operations.includes(operation)) return false
    if (this.#random() >= rate) return false
    if (remaining !== null) this.#settings = { ...this.#settings, remaining: remaining - 1 }
    return true
  }
}

const isRate = (value: unknown) => typeof value === 'number' && value >= 0 && value <= 1
const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0
const isOperationList = (value: unknown) =>
  Array.isArray(value) && value.every((name) => CONCERNED.hang.includes(String(name)))

const RULES = {
  seed: isCount,
  operations: (value) => value === null || isOperationList(value),
  remaining: (value) => value === null || isCount(value),
  throttleRate: isRate,
  throttleError: (value) => value === 'ProvisionedThroughputExceededException' || value === 'ThrottlingException',
  unprocessedRate: isRate,
  transactionConflictRate: isRate,
  lostAcknowledgementRate: isRate,
  hangRate: isRate,
  indexLagMs: isCount,
  expiryPaused: (value) => typeof value === 'boolean',
} satisfies Record<keyof FaultSettings, (value: unknown) => boolean>

const rules = new Map<string, (value: unknown) => boolean>(Object.entries(RULES))

function checked(changes: Partial<FaultSettings>): Partial<FaultSettings> {
  for (const [name, value] of Object.entries(changes)) {
    if (!rules.get(name)?.(value)) throw validationError(`Fault setting ${name} cannot be ${JSON.stringify(value)}`)
  }
  return changes
}
