// stdin, stdout and stderr, however the program was started.
#pragma once

namespace mh::cli {

// Call before anything is opened. A stream that came closed is occupied, so that no file opened later takes its number
// and receives what was meant for it: reading such a stdin and writing such a stdout fail, such a stderr drops what it
// is given. A pipe without a reader, and a file that grows past a limit (ulimit -f), become an error of the write
// instead of the end of the process.
void settle_standard_streams();

// Throws: io, where stdin and stdout are the same file: every line read would add one to read.
void refuse_stdin_as_stdout();

// Flushes stdout. Throws OutputLost where it, or a write before, failed.
void flush_output();

struct OutputLost {
  int error;  // errno
};

}  // namespace mh::cli
