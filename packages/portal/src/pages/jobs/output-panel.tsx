import { ArrowDownToLine, Download } from 'lucide-react'
import { useEffect, useMemo, useRef, useState } from 'react'
import type { Schemas } from '../../api/client.ts'
import { Button } from '../../kit/button.tsx'
import { Card } from '../../kit/card.tsx'
import { CheckField } from '../../kit/field.tsx'
import { ErrorNote } from '../../kit/error-note.tsx'
import { saveFile } from '../../kit/save-file.ts'
import { NodeChoice } from './node-choice.tsx'
import styles from './output-panel.module.css'
import { plainText } from './plain-text.ts'
import { useOutput } from './use-output.ts'

type Chunk = Schemas['OutputChunk']

interface OutputPanelProps {
  jobId: string
  nameOf: (nodeId: string) => string
}

/** What the nodes have written, as it comes. It is text, whatever it holds. */
export function OutputPanel({ jobId, nameOf }: OutputPanelProps) {
  const { chunks, isFinished, failure } = useOutput(jobId)
  const [nodeId, setNodeId] = useState('')
  const [isFollowing, setIsFollowing] = useState(true)
  const nodeIds = useMemo(() => [...new Set(chunks.map((chunk) => chunk.nodeId))], [chunks])
  const shown = nodeId === '' ? chunks : chunks.filter((chunk) => chunk.nodeId === nodeId)
  return (
    <Card
      title="Output"
      actions={
        <>
          {nodeIds.length > 1 && <NodeChoice {...{ nodeIds, nameOf, nodeId, setNodeId }} />}
          {!isFinished && <CheckField label="Follow" checked={isFollowing} onChange={setIsFollowing} />}
          <Button
            icon={Download}
            onClick={() =>
              saveFile(
                `${jobId}.txt`,
                shown.map(({ data }) => data),
                'text/plain',
              )
            }
            disabled={shown.length === 0}
          >
            Download
          </Button>
        </>
      }
    >
      {failure !== undefined && <ErrorNote error={failure} />}
      <Lines chunks={shown} nameOf={nodeIds.length > 1 ? nameOf : undefined} isFollowing={isFollowing && !isFinished} />
      <p role="status" className={styles['state']}>
        {isFinished ? endText(shown.length) : 'The output goes on as the nodes write it.'}
      </p>
    </Card>
  )
}

const endText = (length: number): string => (length === 0 ? 'The job wrote nothing.' : 'The output is complete.')

interface LinesProps {
  chunks: readonly Chunk[]
  /** Where several nodes write: how they are called. */
  nameOf: ((nodeId: string) => string) | undefined
  isFollowing: boolean
}

function Lines({ chunks, nameOf, isFollowing }: LinesProps) {
  const box = useRef<HTMLPreElement>(null)
  useEffect(() => {
    if (isFollowing) box.current?.scrollTo({ top: box.current.scrollHeight })
  }, [chunks, isFollowing])
  return (
    <pre ref={box} role="log" className={styles['output']} tabIndex={0} aria-label="Output of the job">
      {chunks.map(({ offset, nodeId, stream, data }, index) => (
        <span key={offset} className={stream === 'stderr' ? styles['stderr'] : undefined}>
          {nameOf && chunks[index - 1]?.nodeId !== nodeId && (
            <span className={styles['node']}>{`${index === 0 ? '' : '\n'}── ${nameOf(nodeId)} ──\n`}</span>
          )}
          {plainText(data)}
        </span>
      ))}
      {isFollowing && <ArrowDownToLine size={14} aria-hidden className={styles['more']} />}
    </pre>
  )
}
