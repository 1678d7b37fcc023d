import { createQueueFaults } from './queue-faults.ts'
import { createStoreFaults } from './store-faults.ts'

export const dynamoDb = createStoreFaults().hooks
export const sqs = createQueueFaults().hooks
