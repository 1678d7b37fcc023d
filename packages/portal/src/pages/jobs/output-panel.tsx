import { Download } from 'lucide-react'
import { Fragment, memo, type UIEvent, useEffect, useId, useMemo, useRef, useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { Card } from '../../ui/card.tsx'
import { classes } from '../../ui/class-names.ts'
import { ErrorNote } from '../../ui/error-note.tsx'
import field from '../../ui/field.module.css'
import { CheckField } from '../../ui/field.tsx'
import { saveFile } from '../../ui/save-file.ts'
import styles from './output-panel.module.css'
import { fileParts, lostText, type OutputRow, plainText, rowsOf } from './output.ts'
import { useOutput } from './use-output.ts'

/** The live output of a job. It is always shown as plain text, because scripts may write any characters. */
export function OutputPanel({ jobId, nameOf }: { jobId: string; nameOf: (nodeId: string) => string }) {
  const { parts, isFinished, failure } = useOutput(jobId)
  const [nodeId, setNodeId] = useState('')
  const [isFollowing, setIsFollowing] = useState(true)
  const nodeIds = useMemo(() => [...new Set(parts.map((part) => part.nodeId))], [parts])
  const rows = useMemo(() => rowsOf(parts, nodeId), [parts, nodeId])
  return (
    <Card
      title="Output"
      actions={
        <>
          {nodeIds.length > 1 && <NodeChoice {...{ nodeIds, nameOf, nodeId, setNodeId }} />}
          {!isFinished && <CheckField label="Follow" checked={isFollowing} onChange={setIsFollowing} />}
          <Button
            icon={Download}
            onClick={() => saveFile(`${jobId}.txt`, fileParts(rows), 'text/plain')}
            disabled={rows.length === 0}
          >
            Download
          </Button>
        </>
      }
    >
      {failure !== undefined && <ErrorNote error={failure} />}
      <OutputLines
        rows={rows}
        nameOf={nodeIds.length > 1 ? nameOf : undefined}
        isFollowing={isFollowing}
        onScroll={setIsFollowing}
      />
      <p role="status" className={styles['state']}>
        {isFinished ? endText(rows.length) : 'The output updates live.'}
      </p>
    </Card>
  )
}

const endText = (length: number): string => (length === 0 ? 'No output.' : 'The output is complete.')

interface OutputLinesProps {
  rows: readonly OutputRow[]
  /** Undefined if only one node writes output. */
  nameOf: ((nodeId: string) => string) | undefined
  isFollowing: boolean
  /** Called when the user reaches the end of the output or scrolls away from it. */
  onScroll: (isAtEnd: boolean) => void
}

// Browsers round scroll positions.
const atEndPx = 4

// Chunks are in order of arrival. With several nodes, a heading precedes the chunks of each node.
function OutputLines({ rows, nameOf, isFollowing, onScroll }: OutputLinesProps) {
  const box = useRef<HTMLPreElement>(null)
  const lastTop = useRef(0)
  useEffect(() => {
    if (isFollowing) box.current?.scrollTo({ top: box.current.scrollHeight })
  }, [rows, isFollowing])
  const handleScroll = ({ currentTarget: { scrollTop, scrollHeight, clientHeight } }: UIEvent<HTMLPreElement>) => {
    const isAtEnd = scrollHeight - clientHeight - scrollTop < atEndPx
    // Only scrolling up stops following; new output below the visible part does not.
    if (isAtEnd || scrollTop < lastTop.current) onScroll(isAtEnd)
    lastTop.current = scrollTop
  }
  return (
    <pre
      ref={box}
      role="log"
      className={styles['output']}
      tabIndex={0}
      aria-label="Output of the job"
      onScroll={handleScroll}
    >
      {rows.map(({ part: { offset, nodeId, stream, data }, lostBytes }, index) => (
        <Fragment key={offset}>
          {lostBytes > 0 && <span className={styles['node']}>{lostText(lostBytes)}</span>}
          {nameOf && rows[index - 1]?.part.nodeId !== nodeId && (
            <span className={styles['node']}>{`${index === 0 ? '' : '\n'}── ${nameOf(nodeId)} ──\n`}</span>
          )}
          <OutputText data={data} isError={stream === 'stderr'} />
        </Fragment>
      ))}
    </pre>
  )
}

// Memoised, because existing output does not change while new output is added.
const OutputText = memo(({ data, isError }: { data: string; isError: boolean }) => (
  <span className={isError ? styles['stderr'] : undefined}>{plainText(data)}</span>
))

interface NodeChoiceProps {
  nodeIds: readonly string[]
  nameOf: (nodeId: string) => string
  nodeId: string
  setNodeId: (nodeId: string) => void
}

function NodeChoice({ nodeIds, nameOf, nodeId, setNodeId }: NodeChoiceProps) {
  const id = useId()
  return (
    <label htmlFor={id}>
      <span className="visually-hidden">Node</span>
      <select
        id={id}
        className={classes(field['control'])}
        value={nodeId}
        onChange={(event) => setNodeId(event.currentTarget.value)}
      >
        <option value="">All {nodeIds.length} nodes</option>
        {nodeIds.map((each) => (
          <option key={each} value={each}>
            {nameOf(each)}
          </option>
        ))}
      </select>
    </label>
  )
}
