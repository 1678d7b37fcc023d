import { runItemAction } from './actions.ts'
import { writeCost } from './capacity.ts'
import type { Cost } from './capacity.ts'
import type { Changes } from './commit-log.ts'
import { createKey, validateItem, validateKey } from './dynalite.ts'
import type { Data } from './dynalite.ts'
import { errorName, isAwsError } from './errors.ts'
import type { AwsError } from './errors.ts'
import { stageExpiry } from './expiry.ts'
import type { RowChanges } from './index-lag.ts'
import { indexChanges } from './indexes.ts'
import type { IndexChange } from './indexes.ts'
import { keyProblem } from './key-limits.ts'
import { itemPrefix } from './keys.ts'
import type { Store } from './store.ts'
import type { Input, Item, StoredTable } from './types.ts'

export type WriteAction = 'putItem' | 'updateItem' | 'deleteItem' | 'conditionCheck'

export interface WriteRequest {
  action: WriteAction
  data: Data
  /** Whether a failed condition shows the item that failed it. */
  showsItem: boolean
}
