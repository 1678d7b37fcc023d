import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb'

/** Encodes the attributes of an item in the format of DynamoDB. */
export const encode = (item: object): Record<string, AttributeValue> => marshall(item, { removeUndefinedValues: true })

export const decode = (item: Record<string, AttributeValue>): Record<string, unknown> => unmarshall(item)

export type AttributeCondition =
  | { is: unknown }
  | { isNot: unknown }
  | { absent: true }
  | { present: true }
  | { atMost: number }
  | { atLeast: number }
  | { absentOrAtMost: number }
  | { absentOrSmaller: number }
  | { oneOf: readonly unknown[] }
  | { containsAll: ReadonlySet<string> }

/** Requires that an attribute still has the value that was read, or is still absent. */
export const unchangedCondition = (value: unknown): AttributeCondition =>
  value === undefined ? { absent: true } : { is: value }

export type Condition = Record<string, AttributeCondition>

/** `add` increments numbers, starting at zero, or adds set members; `drop` removes set members. */
export interface Change {
  set?: Record<string, unknown>
  add?: Record<string, number | ReadonlySet<string>>
  drop?: Record<string, ReadonlySet<string>>
  remove?: readonly string[]
}

class Builder {
  readonly names: Record<string, string> = {}
  readonly values: Record<string, unknown> = {}
  private readonly aliases = new Map<string, string>()

  nameAlias(attribute: string): string {
    let alias = this.aliases.get(attribute)
    if (alias === undefined) {
      alias = `#n${this.aliases.size}`
      this.aliases.set(attribute, alias)
      this.names[alias] = attribute
    }
    return alias
  }

  valueAlias(value: unknown): string {
    const alias = `:v${Object.keys(this.values).length}`
    this.values[alias] = value
    return alias
  }

  attributeExpression(attribute: string, test: AttributeCondition): string {
    const name = this.nameAlias(attribute)
    if ('absent' in test) return `attribute_not_exists(${name})`
    if ('present' in test) return `attribute_exists(${name})`
    if ('is' in test) return `${name} = ${this.valueAlias(test.is)}`
    if ('isNot' in test) return `${name} <> ${this.valueAlias(test.isNot)}`
    if ('atMost' in test) return `${name} <= ${this.valueAlias(test.atMost)}`
    if ('oneOf' in test) return `${name} IN (${test.oneOf.map((value) => this.valueAlias(value)).join(', ')})`
    if ('containsAll' in test) {
      return [...test.containsAll].map((member) => `contains(${name}, ${this.valueAlias(member)})`).join(' AND ')
    }
    if ('absentOrAtMost' in test) {
      return `(attribute_not_exists(${name}) OR ${name} <= ${this.valueAlias(test.absentOrAtMost)})`
    }
    if ('absentOrSmaller' in test) {
      return `(attribute_not_exists(${name}) OR size(${name}) < ${this.valueAlias(test.absentOrSmaller)})`
    }
    return `${name} >= ${this.valueAlias(test.atLeast)}`
  }

  conditionExpression(condition: Condition): string {
    return Object.entries(condition)
      .map(([attribute, test]) => this.attributeExpression(attribute, test))
      .join(' AND ')
  }

  updateExpression({ set = {}, add = {}, drop = {}, remove = [] }: Change): string {
    const assignments = Object.entries(set)
      .filter(([, value]) => value !== undefined)
      .map(([attribute, value]) => `${this.nameAlias(attribute)} = ${this.valueAlias(value)}`)
    const additions = Object.entries(add).map(
      ([attribute, amount]) => `${this.nameAlias(attribute)} ${this.valueAlias(amount)}`,
    )
    const drops = Object.entries(drop).map(
      ([attribute, members]) => `${this.nameAlias(attribute)} ${this.valueAlias(members)}`,
    )
    const removals = remove.map((attribute) => this.nameAlias(attribute))
    return [
      ...clauses('SET', assignments),
      ...clauses('ADD', additions),
      ...clauses('DELETE', drops),
      ...clauses('REMOVE', removals),
    ].join(' ')
  }
}

const clauses = (keyword: string, terms: string[]): string[] =>
  terms.length > 0 ? [`${keyword} ${terms.join(', ')}`] : []

const withAttributes = <Expressions>(expressions: Expressions, { names, values }: Builder) => ({
  ...expressions,
  ...(Object.keys(names).length > 0 && { ExpressionAttributeNames: names }),
  ...(Object.keys(values).length > 0 && { ExpressionAttributeValues: encode(values) }),
})

export function optionalConditionInput(condition: Condition) {
  const builder = new Builder()
  const text = builder.conditionExpression(condition)
  return withAttributes(text === '' ? {} : { ConditionExpression: text }, builder)
}

export function conditionInput(condition: Condition) {
  const builder = new Builder()
  return withAttributes({ ConditionExpression: builder.conditionExpression(condition) }, builder)
}

export function updateInput(change: Change, condition: Condition) {
  const builder = new Builder()
  const UpdateExpression = builder.updateExpression(change)
  const text = builder.conditionExpression(condition)
  return withAttributes({ UpdateExpression, ...(text !== '' && { ConditionExpression: text }) }, builder)
}
