import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'

/** A store in a process of its own, to be killed: node serve.ts <data dir>. Prints its address. */
const database = await startDynamoDb({ dataDir: process.argv[2]! })
console.log(database.url)
