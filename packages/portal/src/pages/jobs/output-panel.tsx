import { useVirtualizer } from '@tanstack/react-virtual'
import { ChevronDown, ChevronUp, Clock, Download, Maximize, Minimize, WrapText } from 'lucide-react'
import { type KeyboardEvent, type UIEvent, useDeferredValue, useEffect, useId, useMemo, useRef, useState } from 'react'
import { getPreference, setPreference } from '../../lib/preferences.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { Card } from '../../ui/card.tsx'
import { classes } from '../../ui/class-names.ts'
import { CopyButton } from '../../ui/copy.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import field from '../../ui/field.module.css'
import { CheckField } from '../../ui/field.tsx'
import { saveFile } from '../../ui/save-file.ts'
import { clockText } from '../../ui/time.tsx'
import { joinLines, linesOf, type OutputLine, patternOf, plainTextOf } from './output-lines.ts'
import styles from './output-panel.module.css'
import { fileParts, rowsOf } from './output.ts'
import { segmentsOf, type Style, withMatches } from './terminal-text.ts'
import { useOutput } from './use-output.ts'

interface OutputPanelProps {
  jobId: string
  nameOf: (nodeId: string) => string
}

/** The live output of a job. Scripts may write any characters, so only colours and fonts are interpreted. */
export function OutputPanel({ jobId, nameOf }: OutputPanelProps) {
  const { parts, isFinished, failure } = useOutput(jobId)
  const [nodeId, setNodeId] = useState('')
  const [isFollowing, setIsFollowing] = useState(true)
  const [isWrapped, setIsWrapped] = useSwitch('output-wrap', true)
  const [hasTimes, setHasTimes] = useSwitch('output-times', false)
  const nodeIds = useMemo(() => [...new Set(parts.map((part) => part.nodeId))], [parts])
  const rows = useMemo(() => rowsOf(parts, nodeId), [parts, nodeId])
  const lines = useMemo(() => linesOf(rows, nodeIds.length > 1 ? nameOf : undefined), [rows, nodeIds, nameOf])
  const texts = useMemo(() => lines.map(plainTextOf), [lines])
  const frame = useRef<HTMLDivElement>(null)
  const search = useSearch(texts)
  useFindShortcut(frame)
  return (
    <Card
      title="Output"
      actions={
        <>
          {nodeIds.length > 1 && <NodeChoice {...{ nodeIds, nameOf, nodeId, setNodeId }} />}
          {!isFinished && <CheckField label="Follow" checked={isFollowing} onChange={setIsFollowing} />}
          <CopyButton label="Copy output" text={() => joinLines(lines, texts)} />
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
      <div ref={frame} className={styles['frame']}>
        <div className={styles['tools']}>
          <SearchTools search={search} />
          <IconButton
            icon={WrapText}
            label="Wrap lines"
            aria-pressed={isWrapped}
            onClick={() => setIsWrapped(!isWrapped)}
          />
          <IconButton icon={Clock} label="Timestamps" aria-pressed={hasTimes} onClick={() => setHasTimes(!hasTimes)} />
          <FullScreenButton frame={frame} />
        </div>
        <OutputLines
          lines={lines}
          pattern={search.pattern}
          shownIndex={search.shownIndex}
          isWrapped={isWrapped}
          hasTimes={hasTimes}
          isFollowing={isFollowing && search.pattern === undefined}
          onScroll={setIsFollowing}
        />
      </div>
      <p role="status" className={styles['state']}>
        {isFinished ? endText(lines.length) : 'The output updates live.'}
      </p>
    </Card>
  )
}

const endText = (length: number): string => (length === 0 ? 'No output.' : 'The output is complete.')

function useSwitch(name: string, initialValue: boolean) {
  const [isOn, setIsOn] = useState(() => (getPreference(name) ?? String(initialValue)) === 'true')
  const change = (nextValue: boolean) => {
    setIsOn(nextValue)
    setPreference(name, nextValue === initialValue ? undefined : String(nextValue))
  }
  return [isOn, change] as const
}

/** Finds the lines that contain a text. `shownIndex` is the line to scroll to. */
function useSearch(texts: readonly string[]) {
  const [text, setText] = useState('')
  const [position, setPosition] = useState(0)
  const searchedText = useDeferredValue(text)
  const pattern = useMemo(() => patternOf(searchedText), [searchedText])
  const foundIndexes = useMemo(
    () => (pattern === undefined ? [] : texts.flatMap((line, index) => (line.search(pattern) < 0 ? [] : [index]))),
    [texts, pattern],
  )
  const current = foundIndexes.length === 0 ? 0 : position % foundIndexes.length
  const move = (delta: 1 | -1) =>
    foundIndexes.length > 0 && setPosition((current + delta + foundIndexes.length) % foundIndexes.length)
  const change = (nextText: string) => {
    setText(nextText)
    setPosition(0)
  }
  return { text, change, move, pattern, current, count: foundIndexes.length, shownIndex: foundIndexes[current] }
}

function SearchTools({
  search: { text, change, move, pattern, current, count },
}: {
  search: ReturnType<typeof useSearch>
}) {
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') change('')
    if (event.key === 'Enter') move(event.shiftKey ? -1 : 1)
  }
  return (
    <div className={styles['search']}>
      <input
        type="search"
        aria-label="Search the output"
        placeholder="Search the output"
        maxLength={200}
        className={field['control']}
        value={text}
        onChange={(event) => change(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      {pattern !== undefined && (
        <>
          <span role="status" className={styles['state']}>
            {count === 0 ? 'No match' : `${current + 1} of ${count.toLocaleString('en')} lines`}
          </span>
          <IconButton icon={ChevronUp} label="Previous match" onClick={() => move(-1)} />
          <IconButton icon={ChevronDown} label="Next match" onClick={() => move(1)} />
        </>
      )}
    </div>
  )
}

// Ctrl+F and ⌘F move the focus to the search field, because the browser can find only lines that are rendered.
function useFindShortcut(frame: { current: HTMLElement | null }): void {
  useEffect(() => {
    const element = frame.current
    const onKey = (event: globalThis.KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'f' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      element?.querySelector('input')?.focus()
    }
    element?.addEventListener('keydown', onKey)
    return () => element?.removeEventListener('keydown', onKey)
  }, [frame])
}

function FullScreenButton({ frame }: { frame: { current: HTMLElement | null } }) {
  const [isFull, setIsFull] = useState(false)
  useEffect(() => {
    const update = () => setIsFull(document.fullscreenElement !== null)
    document.addEventListener('fullscreenchange', update)
    return () => document.removeEventListener('fullscreenchange', update)
  }, [])
  if (!document.fullscreenEnabled) return null
  const toggle = () => void (isFull ? document.exitFullscreen() : frame.current?.requestFullscreen())
  return (
    <IconButton
      icon={isFull ? Minimize : Maximize}
      label={isFull ? 'Leave full screen' : 'Full screen'}
      onClick={toggle}
    />
  )
}

interface OutputLinesProps {
  lines: readonly OutputLine[]
  pattern: RegExp | undefined
  shownIndex: number | undefined
  isWrapped: boolean
  hasTimes: boolean
  isFollowing: boolean
  /** Called when the user reaches the end of the output or scrolls away from it. */
  onScroll: (isAtEnd: boolean) => void
}

// Browsers round scroll positions.
const atEndPx = 4
const estimatedLinePx = 21

/** Renders the visible lines and some lines around them. */
function OutputLines({ lines, pattern, shownIndex, isWrapped, hasTimes, isFollowing, onScroll }: OutputLinesProps) {
  const box = useRef<HTMLDivElement>(null)
  const lastTop = useRef(0)
  // oxlint-disable-next-line react/incompatible-library -- the result is not memoized
  const virtualizer = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => estimatedLinePx,
    overscan: 20,
  })
  const totalPx = virtualizer.getTotalSize()
  useEffect(() => virtualizer.measure(), [virtualizer, isWrapped, hasTimes])
  useEffect(() => {
    if (isFollowing) box.current?.scrollTo({ top: box.current.scrollHeight })
  }, [lines, totalPx, isFollowing])
  useEffect(() => {
    if (shownIndex !== undefined) virtualizer.scrollToIndex(shownIndex, { align: 'center' })
  }, [virtualizer, shownIndex, pattern])
  const handleScroll = ({ currentTarget: { scrollTop, scrollHeight, clientHeight } }: UIEvent<HTMLDivElement>) => {
    const isAtEnd = scrollHeight - clientHeight - scrollTop < atEndPx
    // Only scrolling up stops following; new output below the visible part does not.
    if (isAtEnd || scrollTop < lastTop.current) onScroll(isAtEnd)
    lastTop.current = scrollTop
  }
  const items = virtualizer.getVirtualItems()
  const digitCount = String(lines.findLast(({ lineNumber }) => lineNumber !== undefined)?.lineNumber ?? 1).length
  return (
    <div
      ref={box}
      role="log"
      className={classes(styles['output'], isWrapped && styles['wrapped'])}
      tabIndex={0}
      aria-label="Output of the job"
      onScroll={handleScroll}
    >
      <div style={{ blockSize: totalPx }}>
        <div style={{ transform: `translateY(${items[0]?.start ?? 0}px)` }}>
          {items.map(({ index }) => {
            const line = lines[index]
            return (
              line && (
                <div
                  key={index}
                  ref={virtualizer.measureElement}
                  data-index={index}
                  data-gutter={line.isNote ? undefined : gutterOf(line, digitCount, hasTimes)}
                  data-stream={line.isError ? 'stderr' : undefined}
                  className={classes(
                    line.isNote ? styles['note'] : styles['line'],
                    index === shownIndex && styles['shown'],
                  )}
                >
                  <span>
                    <LineText line={line} pattern={pattern} />
                  </span>
                </div>
              )
            )
          })}
        </div>
      </div>
    </div>
  )
}

function gutterOf({ lineNumber, at, isError }: OutputLine, digitCount: number, hasTimes: boolean): string {
  const time = hasTimes ? `${at === undefined || lineNumber === undefined ? ' '.repeat(8) : clockText(at)}  ` : ''
  return `${time}${String(lineNumber ?? '').padStart(digitCount)}${isError ? ' err' : '    '}`
}

function LineText({ line, pattern }: { line: OutputLine; pattern: RegExp | undefined }) {
  const { segments } = segmentsOf(line.text, line.style)
  if (segments.length === 0) return '\n'
  const parts =
    pattern === undefined ? segments.map((each) => ({ ...each, isMatch: false })) : withMatches(segments, pattern)
  return parts.map(({ text, style, isMatch }, index) => {
    const className = classesOf(style)
    if (!isMatch && className === '') return text
    const Element = isMatch ? 'mark' : 'span'
    return (
      // oxlint-disable-next-line react/no-array-index-key -- the parts of a line have no identity
      <Element key={index} className={className}>
        {text}
      </Element>
    )
  })
}

function classesOf({ colour, background, reverse = false, bold, italic, underline, strike }: Style): string {
  const backgroundColour = reverse ? (colour ?? 'grey') : background
  return classes(
    backgroundColour === undefined ? colour && styles[colour] : styles[`on-${backgroundColour}`],
    bold && styles['bold'],
    italic && styles['italic'],
    underline && styles['underline'],
    strike && styles['strike'],
  )
}

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
