//! Go: whatever object has its table.

use super::Activity;

pub(super) const ROWS: &[Activity] = &[
    Activity::new(
        1,
        "GC",
        r"^runtime\.(gc[A-Z]\w*|bgsweep|bgscavenge|\(\*gcWork\)|\(\*gcControllerState\)|scanobject|scanblock|
            scanstack|scanframeworker|greyobject|markroot\w*|wbBufFlush\w*|sweepone|\(\*sweepLocked\)\.sweep|
            \(\*mspan\)\.(?:sweep|reportZombies|typePointers)|findObject|spanOf|getempty|putfull|
            deductAssistCredit|heapSetType|tryDeferToSpanScan|scanSpan\w*|scanObject\w*|
            \(\*spanInlineMarkBits\)|\(\*limiterEvent\)|bulkBarrier\w*|typeBitsBulkBarrier|
            \(\*pageAlloc\)\.scavenge\w*|\(\*scavengerState\)|clearpools)",
    ),
    Activity::new(1, "waiting by spinning", r"^runtime\.(procyield|osyield)"),
    Activity::new(
        2,
        "allocation",
        r"^runtime\.(mallocgc\w*|newobject|makeslice\w*|growslice|makemap\w*|new\w*array|rawstring\w*|
            rawbyteslice|concatstring\w*|slicebytetostring|stringtoslicebyte|\(\*mcache\)|\(\*mcentral\)|
            \(\*mheap\)|persistentalloc|nextFreeFast|memclrNoHeapPointers\w*|sysAlloc|sysMap|sysUsed)",
    ),
    Activity::new(
        2,
        "stack growth",
        r"^runtime\.(newstack|copystack|morestack\w*|adjustframe|adjustpointers|stackalloc|stackfree|
            stackcacherefill)",
    ),
    Activity::new(
        2,
        "maps",
        r"^(internal/runtime/maps\.|runtime\.(map(access|assign|delete|iter|clear)\w*|hashGrow|growWork\w*|
            evacuate\w*|aeshash\w*|memhash\w*|strhash\w*))|^aeshashbody|^memeqbody",
    ),
    Activity::new(
        2,
        "scheduler",
        r"^runtime\.(schedule|findRunnable|mcall|park_m|gopark|goready|ready|wakep|startm|stopm|mPark|
            notesleep|notewakeup|notetsleep\w*|runqgrab|runqsteal|runqget|stealWork|handoffp|sysmon|
            exitsyscall\w*|entersyscall\w*|reentersyscall|gosched\w*|newproc\w*|goexit0|gdestroy|execute|
            netpoll\w*|checkTimers|\(\*timers\)|resetspinning|injectglist|casgstatus|retake|preemptone|
            asyncPreempt2|gopreempt_m|mstart1?|futex(sleep|wakeup))$",
    ),
    Activity::new(
        2,
        "locks and channels",
        r"^runtime\.(lock2?|unlock2?|lockWithRank|semacquire\w*|semrelease\w*|semasleep|semawakeup|chan(send|
            recv)\w*|selectgo|selectnb\w*|sellock|selunlock)|^(internal/)?sync\.\(\*(Mutex|RWMutex|WaitGroup|
            Cond|Map|Pool|HashTrieMap)",
    ),
    Activity::new(
        3,
        "memcpy and memset",
        r"^runtime\.(memmove|memclr\w*|typedmemmove)",
    ),
    Activity::new(
        3,
        "memcmp and memchr",
        r"^runtime\.(memequal\w*|cmpstring)|^(cmpbody|countbody|indexbytebody|indexbody)",
    ),
    Activity::new(
        2,
        "stack walking",
        r"^runtime\.(step|pcvalue|\(\*unwinder\)|funcspdelta|findfunc|gentraceback|funcdata|pcdatavalue\w*|
            readvarint|getStackMap)",
    ),
];
