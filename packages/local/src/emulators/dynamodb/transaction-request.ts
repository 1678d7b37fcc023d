import { constraintError, serviceError, validationError } from './errors.ts'
import { isObject } from './json.ts'
import type { Input } from './types.ts'
import { readWriteRequest } from './writes.ts'
import type { WriteAction, WriteRequest } from './writes.ts'

const MAX_MEMBERS = 100

const ACTIONS: Record<string, WriteAction> = {
  Put: 'putItem',
  Update: 'updateItem',
  Delete: 'deleteItem',
  ConditionCheck: 'conditionCheck',
}

const REQUIRED_EXPRESSIONS: Partial<Record<string, string>> = {
  Update: 'UpdateExpression',
  ConditionCheck: 'ConditionExpression',
}

/** Returns the members. Checks only that there are 1 to 100 of them and that all are objects. */
export function transactionMembers(input: Input): Input[] {
  const members: unknown = input.TransactItems
  if (!Array.isArray(members)) throw constraintError('null', 'transactItems', 'Member must not be null')
  const value = `'[${members.map(() => 'TransactItem').join(', ')}]'`
  if (members.length === 0) throw lengthError(value, 'greater than or equal to 1')
  if (members.length > MAX_MEMBERS) throw lengthError(value, `less than or equal to ${MAX_MEMBERS}`)
  if (!members.every(isObject)) throw serviceError('SerializationException')
  return members
}

/** Throws a validation error if the member is invalid. `position` begins at 0. */
export function readTransactWrite(member: Input, position: number): WriteRequest {
  const [kind = '', ...others] = Object.keys(member).filter((name) => isObject(member[name]))
  const action = ACTIONS[kind]
  if (!action || others.length > 0) {
    throw validationError('TransactItems can only contain one of Check, Put, Update or Delete')
  }
  const input = member[kind]
  const requiredExpressions = REQUIRED_EXPRESSIONS[kind]
  if (requiredExpressions && !input[requiredExpressions]) {
    const path = ['transactItems', position + 1, 'member', lowerFirst(kind), lowerFirst(requiredExpressions)].join('.')
    throw constraintError('null', path, 'Member must not be null')
  }
  return readWriteRequest(action, input)
}

function lengthError(value: string, bound: string) {
  return constraintError(value, 'transactItems', `Member must have length ${bound}`)
}

function lowerFirst(name: string): string {
  return name.charAt(0).toLowerCase() + name.slice(1)
}
