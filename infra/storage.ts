import { tableIndexes, ttlAttribute } from '../packages/core/src/db/schema.ts'
import { options } from './options.ts'
import { isProduction } from './stage.ts'

const names = ['pk', 'sk', ...Object.values(tableIndexes).flat()]

const { restoredTable } = options

/** The table: on-demand capacity, point-in-time recovery of 35 days. */
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
    // A restored table replaces this one permanently: one deployment names it. Any other change that would replace the
    // table, and so lose its data, fails.
    table: (args, resourceOptions) => {
      resourceOptions.protect = isProduction && restoredTable === undefined
      if (restoredTable === undefined) return
      args.name = restoredTable
      resourceOptions.import = restoredTable
    },
  },
})
