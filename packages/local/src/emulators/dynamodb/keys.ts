/*
 * Keys of all records in the store. Rows belong to a TableId, so rows of a deleted table never appear in a new table of
 * the same name.
 *
 *   table~<name>                                     StoredTable
 *   item~<tableId>~<item key>                        item
 *   index~<tableId>~<index>~<index key><item key>    projected item
 *   expiry~<seconds>~<tableId>~<item key>            ExpiryRow: the item that may expire then
 *   token~<token>                                    TokenRecord of an executed transaction
 *   token-expiry~<milliseconds>~<token>              token, to delete it when it expires
 */

const SECONDS_DIGITS = 12
export const MAX_EXPIRY_SECONDS = 10 ** SECONDS_DIGITS - 2
const MILLISECONDS_DIGITS = 15

export const TABLE_PREFIX = 'table~'

export const tableRecord = (tableName: string) => `${TABLE_PREFIX}${tableName}`
export const itemPrefix = (tableId: string) => `item~${tableId}~`
export const indexPrefix = (tableId: string, indexName: string) => `index~${tableId}~${indexName}~`
export const allIndexesPrefix = (tableId: string) => `index~${tableId}~`
export const tokenRecord = (token: string) => `token~${token}`

export function expiryRecord(expiresAtSeconds: number, tableId: string, itemKey: string): string {
  return `expiry~${String(expiresAtSeconds).padStart(SECONDS_DIGITS, '0')}~${tableId}~${itemKey}`
}

export function tokenExpiryRecord(expiresAtMs: number, token: string): string {
  return `token-expiry~${String(expiresAtMs).padStart(MILLISECONDS_DIGITS, '0')}~${token}`
}

/** Returns the range of the expiry records that are due at `nowSeconds`. */
export function expiryRangeUntil(nowSeconds: number) {
  return { gte: 'expiry~', lt: `expiry~${String(nowSeconds + 1).padStart(SECONDS_DIGITS, '0')}` }
}

/** Returns the range of the token-expiry records that are due at `nowMs`. */
export function tokenExpiryRangeUntil(nowMs: number) {
  return { gte: 'token-expiry~', lt: `token-expiry~${String(nowMs + 1).padStart(MILLISECONDS_DIGITS, '0')}` }
}

/** Returns the range of all table, item or index records with a prefix. Their keys are ASCII and sort before U+00FF. */
export function recordsUnder(prefix: string) {
  return { gte: prefix, lt: `${prefix}\u00ff` }
}
