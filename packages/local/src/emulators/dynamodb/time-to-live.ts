import { validate } from './dynalite.ts'
import { constraintError, validationError } from './errors.ts'
import type { Store } from './store.ts'
import type { Input } from './types.ts'

interface Specification {
  AttributeName?: string
  Enabled?: boolean
}

/** Sets or removes the attribute that contains the expiry time, in seconds since 1970. */
export async function updateTimeToLive(store: Store, input: Input): Promise<Input> {
  const { TableName } = validate('describeTable', { TableName: input.TableName })
  const specification: Specification = input.TimeToLiveSpecification ?? {}
  const { AttributeName: attribute, Enabled: isEnabled } = specification
  if (!attribute) {
    const constraint = 'Member must have length greater than or equal to 1'
    throw constraintError("''", 'timeToLiveSpecification.attributeName', constraint)
  }
  const { timeToLive, description } = store.catalog.requireTable(TableName)
  if (timeToLive?.status === 'ENABLING') {
    throw validationError('Time to live has been modified multiple times within a fixed interval')
  }
  if (isEnabled && timeToLive) throw validationError('TimeToLive is already enabled')
  if (!isEnabled && !timeToLive) throw validationError('TimeToLive is already disabled')
  if (!isEnabled && timeToLive?.attribute !== attribute) {
    throw validationError(
      `TimeToLive is active on a different AttributeName: current AttributeName is ${timeToLive?.attribute}`,
    )
  }
  await store.catalog.save(isEnabled ? { description, timeToLive: { attribute, status: 'ENABLING' } } : { description })
  store.work.start(store, TableName)
  return { TimeToLiveSpecification: specification }
}

export function describeTimeToLive(store: Store, input: Input): Input {
  const { TableName } = validate('describeTable', input)
  const { timeToLive } = store.catalog.requireTable(TableName)
  if (!timeToLive) return { TimeToLiveDescription: { TimeToLiveStatus: 'DISABLED' } }
  return { TimeToLiveDescription: { TimeToLiveStatus: timeToLive.status, AttributeName: timeToLive.attribute } }
}
