import { tableIndexes, ttlAttribute } from '../packages/core/src/db/schema.ts'
import { options } from './options.ts'
import { isProduction } from './stage.ts'

const names = ['pk', 'sk', ...Object.values(tableIndexes).flat()]

const { restoredTable } = options

/** The one table: paid per request, restorable to any second of the last 35 days. */
export const table = new sst.aws.Dynamo('Table', {
  fields: Object.fromEntries(names.map((name) => [name, 'string' as const])),
  primaryIndex: { hashKey: 'pk', rangeKey: 'sk' },
  globalIndexes: Object.fromEntries(
    Object.entries(tableIndexes).map(([name, [hashKey, rangeKey]]) => [
      name,
      { hashKey, rangeKey, projection: 'keys-only' as const },
    ]),
  ),
  ttl: ttlAttribute,
  deletionProtection: isProduction,
  transform: {
    // A table that was restored takes the place of this one, for good: one deployment has to name it, and none after that.
    // Nothing else does: a change that would make another table, which is empty, fails.
    table: (args, own) => {
      own.protect = isProduction && restoredTable === undefined
      if (restoredTable === undefined) return
      args.name = restoredTable
      own.import = restoredTable
    },
  },
})
