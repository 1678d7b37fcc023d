import type { AttributeValue, Item } from './types.ts'

const CONTAINER_BYTES = 3
const ENTRY_BYTES = 1

/** Returns the size of an item in bytes, as DynamoDB counts it: text in UTF-8, packed digits, decoded binary values. */
export function itemSize(item: Item): number {
  let bytes = 0
  for (const name in item) bytes += Buffer.byteLength(name) + valueSize(item[name]!)
  return bytes
}

function valueSize(value: AttributeValue): number {
  if (value.S !== undefined) return Buffer.byteLength(value.S)
  if (value.N !== undefined) return numberSize(value.N)
  if (value.B !== undefined) return binarySize(value.B)
  if (value.L) return value.L.reduce((bytes, entry) => bytes + ENTRY_BYTES + valueSize(entry), CONTAINER_BYTES)
  if (value.M) return CONTAINER_BYTES + ENTRY_BYTES * Object.keys(value.M).length + itemSize(value.M)
  if (value.SS) return sum(value.SS, (text) => Buffer.byteLength(text))
  if (value.NS) return sum(value.NS, numberSize)
  if (value.BS) return sum(value.BS, binarySize)
  return 1
}

function sum(values: string[], sizeOf: (value: string) => number): number {
  return values.reduce((bytes, value) => bytes + sizeOf(value), 0)
}

/** Two significant digits share a byte; the exponent takes one byte, and a minus sign another. */
function numberSize(text: string): number {
  const digits = text.replace(/^-|\./g, '').replace(/^0+|0+$/g, '')
  return 1 + Math.ceil(digits.length / 2) + (text.startsWith('-') ? 1 : 0)
}

function binarySize(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0
  return (base64.length / 4) * 3 - padding
}
