// Training runs for multihead/training.py: a configuration in, events out, stopped by what Python answers.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <optional>

#include "multihead/base/parallel.h"
#include "multihead/tasks/task_type.h"
#include "multihead/train/trainer.h"
#include "python/bindings.h"

namespace mh::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// `path`: a TOML file; else `text` is what such a file would hold.
TrainConfig training_config(const std::optional<std::string>& path, const std::string& text,
                            const std::vector<std::string>& overrides) {
  if (path) return read_config(*path, overrides);
  TrainConfig config = parse_config(text, "config");
  override_config(config, overrides);
  if (config.data.max_length == 0) config.data.max_length = config.model.max_length;
  check_config(config);
  return config;
}

// Carries events to Python. From the start of the steps on, what Python raises (Control-C, too) asks the run to save
// and stop, and is raised when it has; before, there is nothing to save and it ends the run at once.
class EventCarrier {
 public:
  explicit EventCarrier(nb::callable heard) : heard_(std::move(heard)) {}

  TrainEvents events() {
    TrainEvents out;
    out.on_start = [this](const TrainStart& e) {
      stepping_ = true;
      tell("start",
           {{"parameters", e.parameters},
            {"vocabulary", e.data.vocabulary},
            {"train", e.data.train},
            {"valid", e.data.valid},
            {"source_tokens", e.data.source_tokens},
            {"tokens", e.data.tokens},
            {"first_step", e.first_step},
            {"steps", e.steps}},
           {}, [&](nb::dict& fields) { fields["examples"] = e.data.examples; });
    };
    out.on_step = [this](const TrainStep& e) {
      tell("step", {{"step", e.step}, {"steps", e.steps}, {"epoch", e.epoch}, {"tokens", e.tokens}},
           {{"loss", e.loss},
            {"learning_rate", e.learning_rate},
            {"grad_norm", e.grad_norm},
            {"tokens_per_second", e.tokens_per_second},
            {"seconds_left", e.seconds_left}});
    };
    out.on_validation = [this](const TrainValidation& e) {
      tell("validation", {{"step", e.step}}, {{"loss", e.loss}}, [&](nb::dict& fields) {
        nb::dict metrics;
        for (const auto& [name, value] : e.metrics) metrics[name.c_str()] = value;
        fields["metrics"] = metrics;
        fields["samples"] = e.samples;
        fields["best"] = e.best;
        fields["mean"] = e.mean;
      });
    };
    out.on_checkpoint = [this](const std::string& path) { tell_text("checkpoint", "path", path); };
    out.on_message = [this](const std::string& sentence) { tell_text("message", "text", sentence); };
    out.on_wait = [this](const std::string& what, int64_t done, int64_t total) {
      tell("wait", {{"done", done}, {"total", total}}, {}, [&](nb::dict& fields) { fields["what"] = what; });
    };
    out.stop_requested = [this] {
      if (!stop_) within_python([] { return PyErr_CheckSignals() == 0 ? nb::object() : throw nb::python_error(); });
      return stop_;
    };
    return out;
  }
  const std::exception_ptr& raised() const { return raised_; }

 private:
  using Whole = std::vector<std::pair<const char*, int64_t>>;
  using Real = std::vector<std::pair<const char*, double>>;

  template <class Call>
  void within_python(Call&& call) {
    const nb::gil_scoped_acquire held;
    try {
      const nb::object answer = call();
      if (answer.is_valid() && answer.ptr() == Py_False) stop_ = true;
    } catch (const nb::python_error&) {
      if (!stepping_) throw;
      raised_ = std::current_exception();
      stop_ = true;
    }
  }
  template <class More>
  void tell(const char* kind, const Whole& whole, const Real& real, More&& more) {
    if (raised_) return;
    within_python([&] {
      nb::dict fields;
      for (const auto& [name, value] : whole) fields[name] = value;
      for (const auto& [name, value] : real) fields[name] = value;
      more(fields);
      return nb::object(heard_(kind, fields));
    });
  }
  void tell(const char* kind, const Whole& whole, const Real& real = {}) {
    tell(kind, whole, real, [](nb::dict&) {});
  }
  void tell_text(const char* kind, const char* field, const std::string& value) {
    tell(kind, {}, {}, [&](nb::dict& fields) { fields[field] = value; });
  }

  nb::callable heard_;
  bool stepping_ = false, stop_ = false;
  std::exception_ptr raised_;
};

nb::tuple run_training(const std::optional<std::string>& path, const std::string& text,
                       const std::vector<std::string>& overrides, bool resume, nb::callable heard) {
  TrainRequest request;
  request.config = training_config(path, text, overrides);
  request.resume = resume;
  if (request.config.train.threads > 0) set_threads(static_cast<int>(request.config.train.threads));
  EventCarrier carrier(std::move(heard));
  request.events = carrier.events();
  TrainOutcome outcome;
  {
    nb::gil_scoped_release released;
    outcome = train(request);
  }
  if (carrier.raised()) std::rethrow_exception(carrier.raised());
  const bool judged = request.config.data.validates() || task_type(request.config.task.kind).judges_itself;
  const nb::object best = judged ? nb::cast(outcome.best_validation) : nb::none();
  return nb::make_tuple(outcome.folder, outcome.steps, outcome.stopped, best, outcome.mean_shipped,
                        request.config.task.kind == TaskKind::translation);
}

}  // namespace

void bind_train(nb::module_& m) {
  m.def("train", run_training, "path"_a.none(), "text"_a, "overrides"_a, "resume"_a, "heard"_a);
}

}  // namespace mh::python
