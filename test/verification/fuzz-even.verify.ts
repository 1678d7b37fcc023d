import { fuzzOperations } from './fuzz/fuzz.ts'

fuzzOperations(0)
