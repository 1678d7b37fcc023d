import { useQueries } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { SelectField } from '../../ui/field.tsx'
import { Loaded } from '../../ui/state.tsx'
import styles from './batch-results.module.css'
import { type Group, groupText } from './group-queries.ts'
import { jobQuery } from './job-queries.ts'
import { type DiffRow, diffLines } from './line-diff.ts'
import { plainLines } from './terminal-text.ts'

// More lines would make the page slow.
const maxRows = 500

export function GroupDiff({ groups }: { groups: readonly Group[] }) {
  const [isOpen, setIsOpen] = useState(false)
  const [keys, setKeys] = useState<[string, string]>()
  if (!isOpen)
    return (
      <div>
        <Button onClick={() => setIsOpen(true)}>Compare two results</Button>
      </div>
    )
  // The largest successful group is usually the expected one.
  const usualGroup = groups.find(({ status }) => status === 'Completed') ?? groups[1]
  const initialKeys = [usualGroup?.key, groups.find(({ key }) => key !== usualGroup?.key)?.key] as const
  const chosenKeys = [keys?.[0] ?? initialKeys[0] ?? '', keys?.[1] ?? initialKeys[1] ?? ''] as const
  const pair = chosenKeys.map((key) => groups.find((group) => group.key === key))
  const options = groups.map((group) => ({ value: group.key, label: groupText(group) }))
  const [one, other] = pair
  return (
    <section aria-label="Comparison" className={styles['group']}>
      <div className={styles['choices']}>
        <SelectField
          name="before"
          label="Compare"
          options={options}
          value={chosenKeys[0]}
          onChange={(key) => setKeys([key, chosenKeys[1]])}
        />
        <SelectField
          name="after"
          label="with"
          options={options}
          value={chosenKeys[1]}
          onChange={(key) => setKeys([chosenKeys[0], key])}
        />
      </div>
      {one !== undefined && other !== undefined && <Diff jobIds={[one.sampleJobId, other.sampleJobId]} />}
    </section>
  )
}

function Diff({ jobIds }: { jobIds: readonly [string, string] }) {
  const query = useQueries({
    // The cached job may be older than its end, so ended jobs have their own key.
    queries: jobIds.map((id) => ({ ...jobQuery(id), queryKey: ['jobs', 'ended', id], staleTime: Infinity })),
    combine: (results) => {
      const outputs = results.flatMap(({ data }) => (data === undefined ? [] : [plainLines(data.result?.output ?? '')]))
      return {
        data: outputs.length === results.length ? outputs : undefined,
        error: results.find(({ error }) => error !== null)?.error ?? null,
        refetch: () => Promise.all(results.map(({ refetch }) => refetch())),
      }
    },
  })
  return (
    <Loaded query={query} what="both outputs">
      {([before = '', after = '']) => <Lines before={before} after={after} />}
    </Loaded>
  )
}

function Lines({ before, after }: { before: string; after: string }) {
  const rows = useMemo(() => diffLines(before, after), [before, after])
  if (rows.every(({ kind }) => kind === 'skipped')) return <p>The output is equal.</p>
  return (
    <>
      <pre role="region" aria-label="Differences" tabIndex={0} className={styles['diff']}>
        {rows.slice(0, maxRows).map((row) => (
          <Row key={row.index} row={row} />
        ))}
      </pre>
      {rows.length > maxRows && <p>{(rows.length - maxRows).toLocaleString('en')} more lines are not shown.</p>}
    </>
  )
}

function Row({ row }: { row: DiffRow }) {
  switch (row.kind) {
    case 'removed':
      return <del>{`- ${row.text}\n`}</del>
    case 'added':
      return <ins>{`+ ${row.text}\n`}</ins>
    case 'skipped':
      return <span className={styles['quiet']}>{`  … ${row.count.toLocaleString('en')} equal lines\n`}</span>
    default:
      return `  ${row.text}\n`
  }
}
