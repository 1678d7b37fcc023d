import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import * as hooks from '../../../../support/emulators/hooks.ts'

/** A store in a process of its own, to be killed: node serve.ts <data dir>. Prints its address. */
const database = await startDynamoDb({ dataDir: process.argv[2]!, hooks: hooks.dynamoDb })
console.log(database.url)
