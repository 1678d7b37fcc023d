import { tableIndexes, ttlAttribute } from '../packages/core/src/db/schema.ts'
import { options } from './options.ts'
import { isProtected } from './stage.ts'

const fieldNames = ['pk', 'sk', ...Object.values(tableIndexes).flat()]

const { restoredTable } = options

/** The defaults of the component are on-demand capacity and point-in-time recovery for 35 days. */
export const table = new sst.aws.Dynamo('Table', {
  fields: Object.fromEntries(fieldNames.map((name) => [name, 'string' as const])),
  primaryIndex: { hashKey: 'pk', rangeKey: 'sk' },
  globalIndexes: Object.fromEntries(
    Object.entries(tableIndexes).map(([name, [hashKey, rangeKey]]) => [
      name,
      { hashKey, rangeKey, projection: 'keys-only' as const },
    ]),
  ),
  ttl: ttlAttribute,
  deletionProtection: isProtected,
  transform: {
    // If the deployment names a restored table, that table replaces this one permanently. Any other replacement would
    // lose the data, so `protect` prevents it in a protected stage.
    table: (args, resourceOptions) => {
      resourceOptions.protect = isProtected && restoredTable === undefined
      if (restoredTable === undefined) return
      args.name = restoredTable
      resourceOptions.import = restoredTable
    },
  },
})
