import { AwsError, dynamoError, transactionCanceled } from './errors.ts'
import type { Metrics } from './metrics.ts'
import { operations } from './operations.ts'
import type { Store } from './store.ts'
import type { Input } from './types.ts'

/** What becomes of a call: an answer, a connection that breaks, or silence. */
type Fate = { answer: Input } | 'broken' | 'silent'

export function isOperation(name: string): boolean {
  return operations.has(name)
}

/** Runs one operation, with the faults that are set, and counts it. Throws an AwsError for a refusal. */
export async function dispatch(store: Store, metrics: Metrics, name: string, input: Input): Promise<Fate> {
  const counted = metrics.begin(name)
  try {
    if (store.faults.strikes('hang', name)) return fail('silent')
    refuseByFault(store, name, input)
    const answer = await operations.get(name)!(store, input, counted)
    return store.faults.strikes('lostAcknowledgement', name) ? fail('broken') : { answer }
  } catch (error) {
    counted.failures += 1
    throw error
  }

  function fail(fate: 'broken' | 'silent'): Fate {
    counted.failures += 1
    return fate
  }
}

function refuseByFault({ faults }: Store, name: string, input: Input): void {
  if (faults.strikes('throttle', name)) throw throttled(faults.read().throttleError)
  if (!faults.strikes('transactionConflict', name)) return
  const members: unknown = input.TransactItems
  const message = 'Transaction is ongoing for the item'
  if (!Array.isArray(members)) throw dynamoError('TransactionConflictException', message)
  const victim = Math.floor(faults.random() * members.length)
  const conflict = { Code: 'TransactionConflict', Message: message }
  throw transactionCanceled(members.map((_member, position) => (position === victim ? conflict : { Code: 'None' })))
}

function throttled(name: string): AwsError {
  if (name === 'ThrottlingException') {
    return new AwsError(`com.amazon.coral.availability#${name}`, 'Rate of requests exceeds the allowed throughput.')
  }
  return dynamoError(
    name,
    'The level of configured provisioned throughput for the table was exceeded. ' +
      'Consider increasing your provisioning level with the UpdateTable API.',
  )
}
