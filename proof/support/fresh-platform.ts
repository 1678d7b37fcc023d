import { bootstrap } from '@platform/core/platform/bootstrap'
import * as keys from '@platform/core/db/keys'
import { type Item } from '@platform/core/db/table'
import { allRows, forget } from './rows.ts'

/** A platform that was never set up, but for the keys that every process has read by now. */
export async function startAnew(): Promise<void> {
  const { pk, sk } = keys.accessKeys()
  await forget((await allRows()).filter((row) => row['pk'] !== pk || row['sk'] !== sk))
  await bootstrap()
}

/** Whether the table holds one organisation, one user with one name, one session and one administrator. */
export function isSetUpOnce(rows: readonly Item[]): boolean {
  const count = (is: (pk: string, sk: string) => boolean) =>
    rows.filter(({ pk, sk }) => is(String(pk), String(sk))).length
  const ones = [
    count((pk) => pk === keys.organisation('').pk),
    count((pk) => pk.endsWith('#USER')),
    count((pk) => pk.startsWith(keys.username('').pk)),
    count((pk, sk) => pk.startsWith(keys.session('').pk) && sk === keys.session('').sk),
  ]
  const { pk, sk } = keys.administrators()
  const administrators = rows.find((row) => row['pk'] === pk && row['sk'] === sk)
  return ones.every((one) => one === 1) && administrators?.['count'] === 1
}
