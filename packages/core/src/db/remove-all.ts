import { type Item, query, type Range, remove } from './table.ts'
import { transact } from './transact.ts'

/** Removes a range, last items first, so that what the others hang on goes last. A kill leaves the rest for the next call. */
export async function removeAll(range: Pick<Range, 'pk' | 'from' | 'to'>): Promise<void> {
  let after: Item | undefined
  do {
    const part = await query({ ...range, limit: 50, newestFirst: true, ...(after && { after }) })
    const keys = part.items.map((item) => ({ pk: String(item['pk']), sk: String(item['sk']) }))
    if (keys.length > 0) await transact(keys.map((key) => remove(key)))
    after = part.next
  } while (after !== undefined)
}
